"""Change of something that Hermes learned: an entry of the change log, which is keyed by subject and number.

A subject is one learned thing, such as `memory/<scope>` or `skill/<name>`. Its changes are numbered from 1. Each one
says who made it, when, from which turn, and what it did. So everything learned can be explained and reverted.
"""

from __future__ import annotations

from enum import StrEnum

from hermes.domain.values import dataclass


class ChangeAction(StrEnum):
    ADD = "add"
    REPLACE = "replace"
    REMOVE = "remove"
    BATCH = "batch"  # several of the above, all or nothing
    EDIT = "edit"  # the whole text at once
    REVERT = "revert"  # back to the state after an earlier change
    PROPOSE = "propose"  # waits for a person's approval
    APPROVE = "approve"
    REJECT = "reject"
    CREATE = "create"
    PATCH = "patch"
    DELETE = "delete"
    WRITE_FILE = "write_file"
    REMOVE_FILE = "remove_file"
    INSTALL = "install"
    UPDATE = "update"
    ARCHIVE = "archive"
    RESTORE = "restore"
    DAMAGED = "damaged"  # in place of a change that cannot be read; never stored


class ChangeAuthor(StrEnum):
    PERSON = "person"  # by a command
    AGENT = "agent"  # by a tool call in a turn
    REVIEW = "review"  # by a background review of a conversation
    FILE = "file"  # by an edit of the file, found later
    SYSTEM = "system"  # by Hermes itself, by a rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    subject: str
    number: int  # 1 for the first change of its subject
    at: float
    author: ChangeAuthor
    action: ChangeAction
    operation: str  # unique in its subject: the id of the tool call or command that made the change
    payload: bytes = b""  # in the format of the subject's owner
    by: str = ""  # the person: platform and user
    session: str = ""  # where it comes from
    turn: str = ""


def damaged_change(subject: str, number: int) -> Change:
    return Change(
        subject=subject,
        number=number,
        at=0.0,
        author=ChangeAuthor.SYSTEM,
        action=ChangeAction.DAMAGED,
        operation="",
    )
