"""Text of a memory file: entries, separated by a line with `§`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hermes.domain.text.injection import suspicion
from hermes.domain.text.standing_order import note_suspicion
from hermes.domain.values import dataclass

SEPARATOR: Final = "§"
_BETWEEN: Final = f"\n{SEPARATOR}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """Entry of a file that stays out of the prompt."""

    number: int  # of the entry, from 1; 0: all of them together are suspicious
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """Entries of a file that may enter a prompt, and those that may not."""

    entries: tuple[str, ...]
    withheld: tuple[Withheld, ...] = ()


def entries_of(text: str) -> tuple[str, ...]:
    """Return the entries of a file: stripped, without empty ones."""
    entries: list[list[str]] = [[]]
    for line in text.replace("\r\n", "\n").split("\n"):
        if line.strip() == SEPARATOR:
            entries.append([])
        else:
            entries[-1].append(line.rstrip())
    return tuple(entry for lines in entries if (entry := "\n".join(lines).strip()))


def text_of(entries: Sequence[str]) -> str:
    return _BETWEEN.join(entries) + "\n" if entries else ""


def size_of(entries: Sequence[str]) -> int:
    """Return the number of characters that count against the limit."""
    return len(_BETWEEN.join(entries))


def admitted(entries: Sequence[str]) -> Admitted:
    """Scan entries that a person may have edited, before they enter a prompt."""
    kept: list[str] = []
    withheld: list[Withheld] = []
    for number, entry in enumerate(entries, 1):
        if reason := note_suspicion(entry):
            withheld.append(Withheld(number=number, reason=reason))
        else:
            kept.append(entry)
    if reason := suspicion("\n".join(kept)):
        return Admitted(entries=(), withheld=(*withheld, Withheld(number=0, reason=reason)))
    return Admitted(entries=tuple(kept), withheld=tuple(withheld))
