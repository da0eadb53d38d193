"""Reader of the log: a value at a position, and the records of one session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hermes.domain.ids import Seq, SessionId
from hermes.domain.records import BadRecord, LogEntry, Record
from hermes.storage.codec import DamagedError, UnreadableError, open_record, unseal
from hermes.storage.row_keys import session_key


def read_entry(session: SessionId, seq: int, lsn: bytes, value: bytes | None) -> LogEntry:
    """Decode the log entry at a position of a session. Raises DamagedError."""
    position = Seq(seq)
    if value is None:
        return LogEntry(seq=position, record=BadRecord(problem="it is lost"))
    try:
        owner, number, record = open_record(unseal(lsn, value))
    except UnreadableError as error:
        return LogEntry(seq=position, record=BadRecord(problem=str(error)))
    if (owner, number) != (session, seq):
        record = BadRecord(problem="another record stands in its place")
    return LogEntry(seq=position, record=record)


def find_records(pairs: Iterable[tuple[bytes, bytes]], session: SessionId) -> Iterator[tuple[bytes, LogEntry]]:
    """Yield the positions and entries of one session among values of the log. Skips damaged values."""
    name = session_key(session)
    for lsn, value in pairs:
        if name not in value:  # fast check: most records belong to other sessions
            continue
        try:
            owner, seq, record = open_record(unseal(lsn, value))
        except (DamagedError, UnreadableError):
            continue
        if owner == session:
            yield lsn, LogEntry(seq=seq, record=record)


def without_gaps(entries: Iterable[LogEntry]) -> list[LogEntry]:
    """Return the records in order, with a bad record in place of a missing one."""
    found: dict[Seq, Record | BadRecord] = {entry.seq: entry.record for entry in entries}
    lost = BadRecord(problem="it is lost")
    return [LogEntry(seq=Seq(seq), record=found.get(Seq(seq), lost)) for seq in range(max(found, default=-1) + 1)]
