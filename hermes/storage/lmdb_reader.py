"""Reader of the store on disk, over LMDB.

Each read is short, copies its data and decodes it afterwards. A damaged record is reported in its place and noted for
the writer, which moves its bytes to the table of bad records. A damaged row is a BadRowError for its session only.
Data on an unreadable page counts as damaged and is not moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, Final, TypeVar

import lmdb
from loguru import logger

from hermes.domain.change import Change, damaged_change
from hermes.domain.errors import BadRowError, UnknownSessionError
from hermes.domain.ids import InboundKey, Seq, SessionId, SessionKey
from hermes.domain.operations import Tally
from hermes.domain.outbox_message import DeadLetter, DeliveredMessage, OutboxMessage
from hermes.domain.process.process_record import ProcessRecord
from hermes.domain.read.reader import Activity, Due
from hermes.domain.records import BadRecord, LogEntry, Record
from hermes.domain.session.state import Session
from hermes.domain.turn.submission import Seen
from hermes.storage import codec
from hermes.storage.codec import DamagedError, LostPageError, UnreadableError
from hermes.storage.commit_plan import bound_sessions
from hermes.storage.env import DATA_FILE, StoreView, open_env, open_tables, require_ours, translated
from hermes.storage.gate import WriteGate
from hermes.storage.job_reader import JobReader
from hermes.storage.pages import DataPages
from hermes.storage.record_log import find_records, read_entry, without_gaps
from hermes.storage.row import due_time, read_head, read_lsns, read_row
from hermes.storage.row_keys import (
    CHANGES,
    DEAD,
    DUE,
    FACTS,
    INBOX,
    LOG,
    OUTBOX,
    PENDING,
    PROCESSES,
    RECENT,
    SENT,
    TALLY,
    change_key,
    due_key,
    due_of,
    lsn_key,
    lsn_of,
    recent_key,
    session_key,
    session_of,
    session_of_recent,
    subject_key,
    text_key,
)
from hermes.storage.staged_changes import last_number, number_of

T = TypeVar("T")
_SALVAGE_STEP: Final = 4096  # records per read
_ROOM_BYTES: Final = 1 << 30  # of address space


@contextmanager
def open_reader(directory: Path) -> Iterator[LmdbReader | None]:
    """Open a store for reading, also one in use. Yield None for a store that was never used.

    The map is larger than the store, because its owner may grow it meanwhile.
    """
    data = directory / DATA_FILE
    map_size_bytes = (2 * data.stat().st_size if data.exists() else 0) + _ROOM_BYTES
    with open_env(directory, map_size_bytes=map_size_bytes, readonly=True) as env:
        if require_ours(env, directory) is None:
            yield None
            return
        with closing(DataPages(data, env.stat()["psize"])) as pages:
            yield LmdbReader(env, open_tables(env), pages)


class LmdbReader(JobReader):
    def __init__(self, env: lmdb.Environment, tables: dict[str, Any], pages: DataPages) -> None:
        self._env = env
        self._tables = tables
        self._pages = pages
        self._lost: set[bytes] = set()  # LSNs of the records found on unreadable pages so far
        self._gate = WriteGate()
        self._damaged: dict[bytes, tuple[SessionId, Seq, bytes, str]] = {}  # records to quarantine, by LSN

    def head(self, session: SessionId) -> Session | None:
        key = session_key(session)
        with self._view() as view:
            row = read_row(view.get, key)
        return read_head(row) if row else None

    def bound(self, key: SessionKey) -> SessionId | None:
        with self._view() as view:
            sessions = bound_sessions(view, text_key(key))
        return session_of(sessions[0]) if sessions else None

    def log(self, session: SessionId, first: Seq = Seq(0), limit: int | None = None) -> list[LogEntry]:
        try:
            return self._log(session, first, limit)
        except BadRowError as error:
            if not isinstance(error.__cause__, LostPageError):  # the caller can repair this
                raise
        found = self.salvage(session)
        return found[first:] if limit is None else found[first : first + limit]

    def _log(self, session: SessionId, first: Seq, limit: int | None) -> list[LogEntry]:
        key = session_key(session)
        with self._view() as view:
            row = read_row(view.get, key)
            if row is None:
                return []
            stop = row.next_seq if limit is None else min(row.next_seq, first + limit)
            found = [(lsn, _value(view, lsn)) for lsn in read_lsns(view.get, row, first, stop)]
        self._note_lost(session, [lsn for lsn, value in found if isinstance(value, LostPageError)])
        return [self._entry(session, Seq(seq), lsn, value) for seq, (lsn, value) in enumerate(found, first)]

    def salvage(self, session: SessionId) -> list[LogEntry]:
        entries: list[LogEntry] = []
        start = b""
        while True:
            with self._view() as view:
                pairs = list(islice(view.scan(LOG, start=start), _SALVAGE_STEP))
            entries += (entry for _, entry in find_records(pairs, session))
            if len(pairs) < _SALVAGE_STEP:
                return without_gaps(entries)
            start = pairs[-1][0] + b"\0"

    def seen(self, key: InboundKey) -> Seen | None:
        place = text_key(key)
        with self._view() as view:
            value = view.get(INBOX, place)
        return None if value is None else codec.open_as(Seen, place, value)

    def pending(self) -> list[SessionId]:
        with self._view() as view:
            return [session_of(key) for key, _ in view.scan(PENDING)]

    def recent(self, limit: int, after: SessionId | Activity | None = None) -> list[Session]:
        with self._view() as view:
            start = b"" if after is None else _place_after(view, after)
            sessions = (session_of_recent(key) for key, _ in view.scan(RECENT, start=start))
            heads = (head for session in sessions if (head := _readable_head(view, session)))
            return list(islice(heads, limit))

    def due(self, before: float, limit: int, after: Due | None = None) -> list[Due]:
        start = b"" if after is None else due_key(session_key(after[1]), after[0]) + b"\0"
        with self._view() as view:
            keys = (key for key, _ in view.scan(DUE, start=start))
            places = ((due_of(key), session_of(session_of_recent(key))) for key in keys)
            return list(islice(takewhile(lambda place: place[0] <= before, places), limit))

    def due_at(self, session: SessionId) -> float | None:
        key = session_key(session)
        with self._view() as view:
            row = read_row(view.get, key)
        return due_time(row) if row else None

    def dead_letters(self) -> list[DeadLetter]:
        with self._view() as view:
            found = list(view.scan(DEAD))
        return [letter for key, value in found if (letter := _readable(DeadLetter, key, value))]

    def tallies(self, first_day: str) -> list[Tally]:
        with self._view() as view:
            found = list(view.scan(TALLY, start=text_key(first_day)))
        return [tally for key, value in found if (tally := _readable(Tally, key, value))]

    def fact(self, name: str) -> bytes | None:
        key = text_key(name)
        with self._view() as view:
            try:
                value = view.get(FACTS, key)
            except LostPageError as error:
                logger.error("storage: the fact {} cannot be read and counts as missing: {}", name, error)
                return None
        fact = None if value is None else _readable_fact(key, value)
        return fact and fact[1]

    def facts(self, prefix: str) -> list[str]:
        with self._view() as view:
            found = list(view.scan(FACTS))
        facts = (fact for key, value in found if (fact := _readable_fact(key, value)))
        return sorted(name for name, _ in facts if name.startswith(prefix))

    def processes(self) -> list[ProcessRecord]:
        with self._view() as view:
            found = list(view.scan(PROCESSES))
        return [record for key, value in found if (record := _readable(ProcessRecord, key, value))]

    def outbox(self) -> list[OutboxMessage]:
        with self._view() as view:
            found = list(view.scan(OUTBOX))
        messages = [each for key, value in found if (each := _readable(OutboxMessage, key, value))]
        return sorted(messages, key=lambda each: each.order)

    def outgoing(self, outgoing: str) -> OutboxMessage | None:
        key = text_key(outgoing)
        with self._view() as view:
            value = view.get(OUTBOX, key)
        return None if value is None else codec.open_as(OutboxMessage, key, value)

    def sent(self, outgoing: str) -> DeliveredMessage | None:
        key = text_key(outgoing)
        with self._view() as view:
            value = view.get(SENT, key)
        return None if value is None else codec.open_as(DeliveredMessage, key, value)

    def sent_with(self, message: str) -> list[DeliveredMessage]:
        with self._view() as view:
            found = list(view.scan(SENT))
        known = (sent for key, value in found if (sent := _readable(DeliveredMessage, key, value)))
        return sorted((sent for sent in known if message in sent.messages), key=lambda sent: sent.sent_at)

    def tail(self, after: int, limit: int) -> list[tuple[int, SessionId, Seq, Record]]:
        with self._view() as view:
            pairs = list(islice(view.scan(LOG, start=lsn_key(after + 1)), limit))
        return [entry for lsn, value in pairs if (entry := _readable_record(lsn, value))]

    def changes(self, subject: str, after: int = 0, limit: int | None = None) -> list[Change]:
        with self._view() as view:
            last = last_number(view, subject)
            stop = last if limit is None else min(last, after + limit)
            found = [(number, _change_value(view, subject, number)) for number in range(after + 1, stop + 1)]
        return [_as_change(subject, number, value) for number, value in found]

    def last_change(self, subject: str) -> Change | None:
        with self._view() as view:
            last = last_number(view, subject)
            value = _change_value(view, subject, last) if last else None
        return _as_change(subject, last, value) if last else None

    def change_of(self, subject: str, operation: str) -> Change | None:
        with self._view() as view:
            number = number_of(view, subject, operation)
            value = None if number is None else _change_value(view, subject, number)
        return None if number is None else _as_change(subject, number, value)

    def change_subjects(self, prefix: str) -> list[str]:
        subjects: list[str] = []
        wanted = start = prefix.encode()
        with self._view() as view:
            while place := next(view.scan(CHANGES, start=start), None):
                subject = place[0].partition(b"\0")[0]
                if not subject.startswith(wanted):
                    break
                subjects.append(subject.decode(errors="replace"))
                start = subject + b"\1"  # the next subject: skips the changes of this one
        return subjects

    @contextmanager
    def _view(self) -> Iterator[StoreView]:
        with self._gate:
            try:
                with StoreView(self._env, self._tables, self._pages) as view:
                    yield view
            except lmdb.Error as error:
                raise translated(error) from error

    def _note_lost(self, session: SessionId, lsns: list[bytes]) -> None:
        if not self._lost.issuperset(lsns):  # log it once
            logger.error("storage: session {}: {} records are on pages that cannot be read", session, len(lsns))
            self._lost.update(lsns)

    def _entry(self, session: SessionId, seq: Seq, lsn: bytes, value: bytes | LostPageError | None) -> LogEntry:
        if isinstance(value, LostPageError):
            return LogEntry(seq=seq, record=BadRecord(problem=str(value)))
        try:
            return read_entry(session, seq, lsn, value)
        except DamagedError as error:
            assert value is not None
            logger.warning(
                "storage: session {}: record {} is damaged and is moved to the table of bad records: {}",
                session,
                seq,
                error,
            )
            self._damaged[lsn] = (session, seq, value, str(error))
            return LogEntry(seq=seq, record=BadRecord(problem=str(error)))


def _value(view: StoreView, lsn: bytes) -> bytes | LostPageError | None:
    try:
        return view.get(LOG, lsn)
    except LostPageError as error:
        return error


def _change_value(view: StoreView, subject: str, number: int) -> bytes | None:
    try:
        return view.get(CHANGES, change_key(subject_key(subject), number))
    except LostPageError:
        return None


def _as_change(subject: str, number: int, value: bytes | None) -> Change:
    try:
        return codec.open_as(Change, change_key(subject_key(subject), number), value or b"")
    except (DamagedError, UnreadableError) as error:
        logger.error("storage: change {} of {} cannot be read: {}", number, subject, error)
        return damaged_change(subject, number)


def _place_after(view: StoreView, session: SessionId | Activity) -> bytes:
    if isinstance(session, tuple):
        return recent_key(session_key(session[1]), session[0]) + b"\0"
    key = session_key(session)
    row = read_row(view.get, key)
    if row is None:
        raise UnknownSessionError(f"there is no session {session} (any more)")
    return row.place + b"\0"


def _readable_head(view: StoreView, session: bytes) -> Session | None:
    try:
        row = read_row(view.get, session)
        return read_head(row) if row else None
    except BadRowError as error:
        logger.warning("{}; it is left out of the list", error)
        return None


def _readable(kind: type[T], key: bytes, value: bytes) -> T | None:
    try:
        return codec.open_as(kind, key, value)
    except (DamagedError, UnreadableError) as error:
        logger.warning("{}; it is left out of the list", error)
        return None


def _readable_fact(key: bytes, value: bytes) -> tuple[str, bytes] | None:
    """Return the name and value of a fact. A damaged fact counts as missing: a lost grant must be given again."""
    try:
        name, content = codec.unpack(codec.unseal(key, value))
    except (DamagedError, UnreadableError) as error:
        logger.error("storage: the fact {} is damaged and counts as missing: {}", key[1:40], error)
        return None
    return name, content


def _readable_record(lsn: bytes, value: bytes) -> tuple[int, SessionId, Seq, Record] | None:
    try:
        session, seq, record = codec.open_record(codec.unseal(lsn, value))
    except (DamagedError, UnreadableError):
        return None  # reported when its session is read
    return None if isinstance(record, BadRecord) else (lsn_of(lsn), session, seq, record)
