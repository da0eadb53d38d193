"""Typed answers to a command that asks for confirmation: a plain yes or no acts like its button. Pure."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from hermes.domain.values import dataclass

VALID_S: Final = 600.0
MAX_OPEN: Final = 1000
_YES: Final = frozenset({"yes", "y", "ok", "okay"})
_NO: Final = frozenset({"no", "n"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    yes: str  # command lines that the answers stand for
    no: str
    at: float


class Confirmations:
    """Open confirmations by person, in memory. Buttons work without them, also after a restart."""

    def __init__(self) -> None:
        self._asked: dict[Hashable, _Asked] = {}

    def expect(self, who: Hashable, command: str, choices: tuple[str, ...], now: float) -> None:
        """Expect a typed answer, if the reply's `choices` have `no` and one that starts with `yes`."""
        yes = next((each for each in choices if each.startswith("yes")), "")
        if not yes or "no" not in choices:
            return
        if len(self._asked) >= MAX_OPEN:
            self._asked.clear()
        self._asked[who] = _Asked(yes=f"/{command} {yes}", no=f"/{command} no", at=now)

    def take(self, who: Hashable, text: str, now: float) -> str:
        """Return the command line that a message stands for, or an empty string. Closes the question."""
        asked = self._asked.pop(who, None)
        if asked is None or now - asked.at > VALID_S:
            return ""
        word = text.strip().lower().strip(" .!")
        return asked.yes if word in _YES else asked.no if word in _NO else ""
