"""Change log in a write plan: changes of what was learned, appended in order and erased by subject."""

from __future__ import annotations

from collections.abc import Callable

from hermes.domain.change import Change
from hermes.domain.errors import ChangeKnownError, SequenceConflictError, StorageError
from hermes.domain.operations import AppendChange, EraseChanges
from hermes.storage import codec
from hermes.storage.codec import DamagedError, UnreadableError
from hermes.storage.row_keys import (
    CHANGE_IDS,
    CHANGES,
    NO_LSN,
    change_key,
    lsn_key,
    lsn_of,
    operation_key,
    prefix_of,
    subject_key,
)
from hermes.storage.stage import StagedWrites, TableSource


class StagedChanges:
    def __init__(self, stage: StagedWrites, pack: Callable[[object], bytes]) -> None:
        self._stage = stage
        self._pack = pack

    def perform(self, operation: AppendChange | EraseChanges) -> None:
        if isinstance(operation, AppendChange):
            self._append(operation.change)
        else:
            self._erase(operation.subject)

    def _append(self, change: Change) -> None:
        subject = subject_key(change.subject)
        known = number_of(self._stage, change.subject, change.operation)
        if known is not None:
            raise ChangeKnownError(change.subject, known)
        last = last_number(self._stage, change.subject)
        if change.number != last + 1:
            raise SequenceConflictError(f"{change.subject} is at change {last}, not {change.number - 1}")
        if not change.operation:
            raise StorageError(f"a change of {change.subject} has no operation id")
        place = change_key(subject, change.number)
        self._stage.put(CHANGES, place, codec.seal(place, self._pack(change)))
        for table, key in (
            (CHANGES, change_key(subject, 0)),
            (CHANGE_IDS, operation_key(subject, change.operation)),
        ):
            self._stage.put(table, key, codec.seal(key, lsn_key(change.number)))

    def _erase(self, subject: str) -> None:
        for table in (CHANGES, CHANGE_IDS):
            for key, _ in list(self._stage.scan(table, prefix_of(subject_key(subject)))):
                self._stage.put(table, key, None)


def last_number(source: TableSource, subject: str) -> int:
    """Return the number of the last change of a subject; 0 if there is none. A damaged head is recomputed."""
    key = subject_key(subject)
    head = change_key(key, 0)
    try:
        value = source.get(CHANGES, head)
        return lsn_of(codec.unseal(head, value)) if value is not None else 0
    except (DamagedError, UnreadableError):
        return max((number_in(place) for place, _ in source.scan(CHANGES, prefix_of(key))), default=0)


def number_of(source: TableSource, subject: str, operation: str) -> int | None:
    """Return the number of the change with that operation id."""
    key = operation_key(subject_key(subject), operation)
    value = source.get(CHANGE_IDS, key)
    return None if value is None else lsn_of(codec.unseal(key, value))


def number_in(key: bytes) -> int:
    """Return the number in a key of `changes`."""
    return lsn_of(key[-len(NO_LSN) :])
