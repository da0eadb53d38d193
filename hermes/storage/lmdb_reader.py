"""Looking into the store on disk: the Reader over LMDB.

Each look is short, copies what it needs and decodes after it has ended. A damaged record is reported in its place
and noted for the writer to set aside; a damaged row is a BadRowError for its session and nobody else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final

import lmdb
from loguru import logger

from hermes.errors import BadRowError, UnknownSessionError
from hermes.records import BadRecord, LogEntry
from hermes.storage import codec
from hermes.storage.codec import DamagedError, UnreadableError
from hermes.storage.env import View, translated
from hermes.storage.gate import Gate
from hermes.storage.keys import (
    DEAD,
    INBOX,
    LOG,
    PENDING,
    RECENT,
    session_key,
    session_of,
    session_of_recent,
    text_key,
)
from hermes.storage.log import find_records, read_entry, without_gaps
from hermes.storage.plan import bound_sessions
from hermes.storage.row import read_head, read_lsns, read_row
from hermes.types import DeadLetter, InboundKey, Seen, Seq, Session, SessionId, SessionKey

_SALVAGE_STEP: Final = 4096  # records in one look


class LmdbReader:
    def __init__(self, env: lmdb.Environment, tables: dict[str, Any]) -> None:
        self._env = env
        self._tables = tables
        self._gate = Gate()
        self._damaged: dict[bytes, tuple[SessionId, Seq, bytes, str]] = {}  # to be set aside, by LSN

    def head(self, session: SessionId) -> Session | None:
        key = session_key(session)
        with self._look() as view:
            row = read_row(view.get, key)
        return read_head(row) if row else None

    def bound(self, key: SessionKey) -> SessionId | None:
        with self._look() as view:
            sessions = bound_sessions(view, text_key(key))
        return session_of(sessions[0]) if sessions else None

    def log(self, session: SessionId, first: Seq = Seq(0), limit: int | None = None) -> list[LogEntry]:
        key = session_key(session)
        with self._look() as view:
            row = read_row(view.get, key)
            if row is None:
                return []
            stop = row.next_seq if limit is None else min(row.next_seq, first + limit)
            found = [(lsn, view.get(LOG, lsn)) for lsn in read_lsns(view.get, row, first, stop)]
        return [self._entry(session, Seq(seq), lsn, value) for seq, (lsn, value) in enumerate(found, first)]

    def salvage(self, session: SessionId) -> list[LogEntry]:
        entries: list[LogEntry] = []
        start = b""
        while True:
            with self._look() as view:
                pairs = list(islice(view.scan(LOG, start=start), _SALVAGE_STEP))
            entries += (entry for _, entry in find_records(pairs, session))
            if len(pairs) < _SALVAGE_STEP:
                return without_gaps(entries)
            start = pairs[-1][0] + b"\0"

    def seen(self, key: InboundKey) -> Seen | None:
        place = text_key(key)
        with self._look() as view:
            value = view.get(INBOX, place)
        return None if value is None else codec.open_as(Seen, place, value)

    def pending(self) -> list[SessionId]:
        with self._look() as view:
            return [session_of(key) for key, _ in view.scan(PENDING)]

    def recent(self, limit: int, after: SessionId | None = None) -> list[Session]:
        with self._look() as view:
            start = b"" if after is None else _place_after(view, after)
            sessions = (session_of_recent(key) for key, _ in view.scan(RECENT, start=start))
            heads = (head for session in sessions if (head := _readable_head(view, session)))
            return list(islice(heads, limit))

    def dead_letters(self) -> list[DeadLetter]:
        with self._look() as view:
            found = list(view.scan(DEAD))
        return [letter for key, value in found if (letter := _readable_letter(key, value))]

    @contextmanager
    def _look(self) -> Iterator[View]:
        with self._gate:
            try:
                with self._env.begin() as txn:
                    yield View(txn, self._tables)
            except lmdb.Error as error:
                raise translated(error) from error

    def _entry(self, session: SessionId, seq: Seq, lsn: bytes, value: bytes | None) -> LogEntry:
        try:
            return read_entry(session, seq, lsn, value)
        except DamagedError as error:
            assert value is not None
            logger.warning("record {} of session {} is damaged ({}); it is set aside", seq, session, error)
            self._damaged[lsn] = (session, seq, value, str(error))
            return LogEntry(seq=seq, record=BadRecord(problem=str(error)))


def _place_after(view: View, session: SessionId) -> bytes:
    key = session_key(session)
    row = read_row(view.get, key)
    if row is None:
        raise UnknownSessionError(f"there is no session {session} (any more)")
    return row.place + b"\0"


def _readable_head(view: View, session: bytes) -> Session | None:
    try:
        row = read_row(view.get, session)
        return read_head(row) if row else None
    except BadRowError as error:
        logger.warning("{}; it is left out of the list", error)
        return None


def _readable_letter(key: bytes, value: bytes) -> DeadLetter | None:
    try:
        return codec.open_as(DeadLetter, key, value)
    except (DamagedError, UnreadableError) as error:
        logger.warning("{}; it is left out of the list", error)
        return None
