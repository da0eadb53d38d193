"""Edits of a memory file: add, replace and remove entries, alone or as a batch. Pure.

A batch is all or nothing: its size counts at the end, so one call can make room and use it. An entry is found by a
part of its text that no other entry has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from hermes.domain.change import ChangeAction
from hermes.domain.errors import BadInputError
from hermes.domain.memory.note_file import SEPARATOR, entries_of, size_of
from hermes.domain.text.injection import suspicion
from hermes.domain.text.standing_order import note_suspicion
from hermes.domain.values import dataclass

MAX_EDITS = 50
_PREVIEW = 400  # characters of an entry in a list


class MemoryProblem(StrEnum):
    """Error codes of refused edits."""

    FULL = "memory_full"
    DUPLICATE = "memory_duplicate"
    NO_MATCH = "memory_no_match"
    AMBIGUOUS = "memory_ambiguous"
    SUSPICIOUS = "memory_suspicious"
    INVALID = "memory_invalid"


_ACTIONS = (ChangeAction.ADD, ChangeAction.REPLACE, ChangeAction.REMOVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEdit:
    action: ChangeAction  # add, replace or remove
    content: str = ""
    old_text: str = ""

    def plain(self) -> dict[str, str]:
        given = {"action": self.action.value, "content": self.content, "old_text": self.old_text}
        return {name: value for name, value in given.items() if value}


def memory_refusal(problem: MemoryProblem, text: str) -> BadInputError:
    return BadInputError(text, code=problem)


def read_edit(given: Mapping[str, Any]) -> MemoryEdit:
    """Check one edit. Raises BadInputError."""
    if strange := sorted(set(given) - {"action", "content", "old_text"}):
        raise memory_refusal(MemoryProblem.INVALID, f"unknown field {strange[0]!r}; use action, content and old_text")
    action, content, old_text = (given.get(name) or "" for name in ("action", "content", "old_text"))
    if action not in _ACTIONS:
        raise memory_refusal(
            MemoryProblem.INVALID, f"action must be add, replace or remove, not {str(action)[:40]!r}"
        )
    if not isinstance(content, str) or not isinstance(old_text, str):
        raise memory_refusal(MemoryProblem.INVALID, "content and old_text must be text")
    edit = MemoryEdit(action=ChangeAction(action), content=content.strip(), old_text=old_text.strip())
    if edit.action is not ChangeAction.REMOVE and not edit.content:
        raise memory_refusal(MemoryProblem.INVALID, f"{action} needs content, the text of the entry")
    if edit.action is not ChangeAction.ADD and not edit.old_text:
        raise memory_refusal(
            MemoryProblem.INVALID, f"{action} needs old_text, a part of the entry that no other entry has"
        )
    _check_content(edit)
    return edit


def apply_edits(entries: tuple[str, ...], edits: Sequence[MemoryEdit], *, limit: int) -> tuple[str, ...]:
    """Return the entries after all edits. Raises BadInputError, and then none of them counts."""
    if not 0 < len(edits) <= MAX_EDITS:
        raise memory_refusal(MemoryProblem.INVALID, f"give 1 to {MAX_EDITS} operations")
    after = list(entries)
    for number, edit in enumerate(edits, 1):
        where = f"operation {number}: " if len(edits) > 1 else ""
        _apply(after, edit, where)
    size, before = size_of(after), size_of(entries)
    if size > limit and size >= before:
        raise memory_refusal(MemoryProblem.FULL, _full(entries, size=size, limit=limit))
    if (reason := suspicion("\n".join(after))) and not suspicion("\n".join(entries)):
        raise memory_refusal(MemoryProblem.SUSPICIOUS, f"not stored: together with the other entries, {reason}")
    return tuple(after)


def action_of(edits: Sequence[MemoryEdit]) -> ChangeAction:
    return edits[0].action if len(edits) == 1 else ChangeAction.BATCH


def numbered(entries: Sequence[str]) -> str:
    """Return the entries as a list with their sizes."""
    return "\n".join(
        f"{number}. ({len(entry):,} characters) {_short(entry)}" for number, entry in enumerate(entries, 1)
    )


def _check_content(edit: MemoryEdit) -> None:
    if edit.content and entries_of(edit.content) != (edit.content.replace("\r\n", "\n"),):
        raise memory_refusal(MemoryProblem.INVALID, f"an entry must not contain a line with only {SEPARATOR}")
    if reason := note_suspicion(edit.content):
        raise memory_refusal(MemoryProblem.SUSPICIOUS, f"not stored: {reason}")


def _apply(entries: list[str], edit: MemoryEdit, where: str) -> None:
    if edit.action is ChangeAction.ADD:
        _require_new(entries, edit.content, where)
        entries.append(edit.content)
        return
    place = _find(entries, edit.old_text, where)
    if edit.action is ChangeAction.REMOVE:
        del entries[place]
        return
    _require_new([*entries[:place], *entries[place + 1 :]], edit.content, where)
    entries[place] = edit.content


def _find(entries: Sequence[str], old_text: str, where: str) -> int:
    places = [number for number, entry in enumerate(entries) if old_text in entry]
    if not places:
        known = f" Entries:\n{numbered(entries)}" if entries else " There are no entries."
        raise memory_refusal(MemoryProblem.NO_MATCH, f"{where}no entry contains {_short(old_text)!r}.{known}")
    if old_text in entries:  # the whole entry, although another one contains it
        return entries.index(old_text)
    if len({entries[place] for place in places}) > 1:
        matching = numbered([entries[place] for place in places])
        raise memory_refusal(
            MemoryProblem.AMBIGUOUS,
            f"{where}{len(places)} entries contain {_short(old_text)!r}; give a longer part of one:\n{matching}",
        )
    return places[0]


def _require_new(entries: Sequence[str], content: str, where: str) -> None:
    if _plain(content) in map(_plain, entries):
        raise memory_refusal(MemoryProblem.DUPLICATE, f"{where}this entry is stored already: {_short(content)!r}")


def _plain(entry: str) -> str:
    return " ".join(entry.split()).casefold()


def _full(entries: Sequence[str], *, size: int, limit: int) -> str:
    return (
        f"no room: the entries would have {size:,} characters, and the limit is {limit:,}. Nothing was stored. "
        f"They have {size_of(entries):,} now. Replace entries by shorter ones or remove some, in the same call, with "
        f"`operations`:\n{numbered(entries)}"
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _PREVIEW else f"{line[:_PREVIEW]}…"
