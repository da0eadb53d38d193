"""Reconciliation of a memory file with its change log. Pure.

A change is stored before the file is replaced. After a crash between both, the file has the text from before the last
change. A person may have edited it as well. A file that was written after the last change was edited by a person.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum

from hermes.domain.change import Change, ChangeAction
from hermes.domain.values import dataclass


class FileState(StrEnum):
    CURRENT = "current"  # the file has the text of the last change
    BEHIND = "behind"  # a crash came between the change and the file: write it now
    EDITED = "edited"  # a person edited the file: record it


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredText:
    """Text of the last change of a subject."""

    number: int = 0  # 0: there is no change
    text: str = ""
    before: str = ""  # text of the change before that
    at: float = 0.0
    damaged: bool = False  # the text cannot be read: the file counts
    exists: bool = False  # there is a file
    file_at: float = 0.0  # when it was last written


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    text: str | None  # None: there is no file
    modified_at: float = 0.0


def reconcile(stored: StoredText, found: FoundFile) -> FileState:
    text = found.text or ""
    if stored.damaged:
        return FileState.EDITED
    if text == stored.text:
        return FileState.CURRENT if found.text is not None or not stored.text else FileState.BEHIND
    is_older = text == stored.before and (found.text is None or found.modified_at <= stored.at)
    if is_older and (found.text is not None or stored.number == 1):
        return FileState.BEHIND
    return FileState.EDITED


def payload_of(scope: str, text: str, *, reverts: int = 0, proposal: int = 0) -> bytes:
    """Return the payload of a change: the whole text after it, and the change or proposal that it refers to."""
    values: dict[str, object] = {"scope": scope, "text": text}
    if reverts:
        values["reverts"] = reverts
    if proposal:
        values["proposal"] = proposal
    return json.dumps(values, ensure_ascii=False).encode()


def text_after(change: Change) -> str | None:
    """Return the text after a change; None if it cannot be read."""
    if change.action is ChangeAction.DAMAGED:
        return None
    try:
        text = json.loads(change.payload)["text"]
    except (ValueError, KeyError, TypeError):
        return None
    return text if isinstance(text, str) else None


def state_before_last(changes: Sequence[Change]) -> int | None:
    """Return the number of the change that an undo goes back to; None if no change is left to undo.

    A change back to the state before the last one takes that one back. So each further undo goes one change back.
    """
    states = [0]  # numbers of the changes that still count, below the state before the first one
    for change in changes:
        if change.action is ChangeAction.REVERT and len(states) > 1 and _reverts(change) == states[-2]:
            states.pop()
        else:
            states.append(change.number)
    return states[-2] if len(states) > 1 else None


def _reverts(change: Change) -> int | None:
    try:
        number = json.loads(change.payload).get("reverts", 0)
    except (ValueError, AttributeError):
        return None
    return number if isinstance(number, int) else None


def scope_text(change: Change) -> str:
    """Return the scope of a change as text; empty if it cannot be read."""
    try:
        return str(json.loads(change.payload)["scope"])
    except (ValueError, KeyError, TypeError):
        return ""


def stored_text(last: Sequence[Change]) -> StoredText:
    """Return the state after the last one or two changes of a subject, oldest first."""
    if not last:
        return StoredText()
    change, text = last[-1], text_after(last[-1])
    before = text_after(last[-2]) if len(last) > 1 else ""
    return StoredText(number=change.number, text=text or "", before=before or "", at=change.at, damaged=text is None)
