"""Write plan of a batch: the changed values, computed from transactions before anything is written.

A transaction is atomic: its changes are staged, and dropped if one of its operations is refused. Each transaction
sees the changes of those before it in the batch. A plan is only values, so it can be written again after the map has
grown.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import assert_never

from loguru import logger

from hermes.domain.errors import (
    AlreadySeenError,
    BadRowError,
    HermesError,
    SequenceConflictError,
    StaleOwnerError,
    StorageError,
    UnknownSessionError,
)
from hermes.domain.ids import Seq, SessionId, SessionKey
from hermes.domain.operations import (
    Append,
    AppendChange,
    Cancel,
    DropDeadLetter,
    DropJob,
    DropProcess,
    Enqueue,
    Erase,
    EraseChanges,
    ForgetSeen,
    MarkDelivered,
    Operation,
    PutFact,
    PutJob,
    PutJobRun,
    PutProcess,
    RecordDelivery,
    Restore,
    See,
    SetAside,
    SetDue,
    Tally,
)
from hermes.domain.outbox_message import DeliveredMessage
from hermes.domain.records import BadRecord
from hermes.domain.turn.submission import Seen
from hermes.domain.values import replace
from hermes.ports.storage import Transaction
from hermes.storage import codec
from hermes.storage.codec import DamagedError, LostPageError, UnreadableError
from hermes.storage.record_log import find_records
from hermes.storage.row import CHUNK, CHUNK_SIZE, Row, due_place, read_lsns
from hermes.storage.row_keys import (
    BAD,
    BOUND,
    DEAD,
    DUE,
    FACTS,
    INBOX,
    INDEX,
    KEYS,
    LOG,
    NO_LSN,
    PROCESSES,
    RECENT,
    SENT,
    SESSIONS,
    TALLY,
    bound_key,
    index_key,
    lsn_key,
    prefix_of,
    recent_key,
    session_key,
    session_of_recent,
    tally_key,
    text_key,
)
from hermes.storage.rows import Change, Known, Rows
from hermes.storage.stage import Changed, StagedWrites, TableSource, Undo, roll_back
from hermes.storage.staged_changes import StagedChanges
from hermes.storage.staged_jobs import StagedJobs
from hermes.storage.staged_outbox import StagedOutbox


class WritePlan:
    def __init__(self, source: TableSource, *, next_lsn: int, forget_from: bytes, known: Known) -> None:
        self.next_lsn = next_lsn
        self.forget_from = forget_from  # where the next ForgetSeen starts: table, space, key
        self._undo: Undo = []
        self._stage = StagedWrites(source, self._undo)
        self._rows = Rows(source, self._undo, known)
        self._pack = codec.packer()
        self._outbox = StagedOutbox(self._stage, self._pack)
        self._learned = StagedChanges(self._stage, self._pack)
        self._jobs = StagedJobs(self._stage, self._pack)

    def add(self, transaction: Transaction) -> HermesError | None:
        """Add a transaction. Return None, or the error if it is refused."""
        before = self.next_lsn, self.forget_from
        try:
            for operation in transaction:
                self._perform(operation)
        except HermesError as error:
            refusal = error
        except codec.UNSTORABLE as error:
            refusal = StorageError(f"the transaction holds something that cannot be stored ({type(error).__name__})")
        else:
            self._undo.clear()
            return None
        roll_back(self._undo)
        self.next_lsn, self.forget_from = before
        return refusal

    def set_aside(self, lsn: bytes, session: SessionId, seq: Seq, raw: bytes, problem: str) -> None:
        """Move the bytes of a damaged record to the table of bad records. The log gets a BadRecord in its place."""
        if self._stage.get(LOG, lsn) == raw:
            note = (session, seq, BadRecord.__name__, BadRecord(problem=problem))
            self._stage.put(LOG, lsn, codec.seal(lsn, self._pack(note)))
            self._stage.put(BAD, lsn, codec.seal(lsn, self._pack((session, seq, problem, raw))))
            self._undo.clear()

    def changes(self) -> dict[str, Changed]:
        """Return the changes to write, by table."""
        self._rows.write_to(self._stage.changes)
        return self._stage.changes

    def done(self) -> None:
        """Note that the plan was written."""
        self._rows.remember()

    def _perform(self, operation: Operation) -> None:
        match operation:
            case Append():
                self._append(operation)
            case Restore():
                self._restore(operation)
            case SetDue():
                self._set_due(operation)
            case Erase():
                self._erase(operation)
            case SetAside() | DropDeadLetter():
                self._change_dead_letter(operation)
            case ForgetSeen():
                self._forget(operation)
            case Tally():
                self._count(operation)
            case PutFact() | PutProcess() | DropProcess():
                self._put_row(operation)
            case See(seen=seen, latest=latest):
                self._see(seen, latest=latest)
            case Enqueue() | RecordDelivery() | MarkDelivered() | Cancel():
                self._outbox.perform(operation, order=self.next_lsn)
            case AppendChange() | EraseChanges() | PutJob() | DropJob() | PutJobRun():
                part = self._learned if isinstance(operation, AppendChange | EraseChanges) else self._jobs
                part.perform(operation)  # type: ignore[arg-type]  # each takes its own operations
            case _:
                assert_never(operation)

    def _change_dead_letter(self, operation: SetAside | DropDeadLetter) -> None:
        if isinstance(operation, SetAside):
            key = text_key(operation.letter.id)
            self._stage.put(DEAD, key, codec.seal(key, self._pack(operation.letter)))
            return
        if self._stage.get(DEAD, text_key(operation.id)) is None:
            raise StorageError(f"there is no dead letter {operation.id}")
        self._stage.put(DEAD, text_key(operation.id), None)

    def _put_row(self, operation: PutFact | PutProcess | DropProcess) -> None:
        match operation:
            case PutFact(name=name, value=value):
                key = text_key(name)
                sealed = None if value is None else codec.seal(key, self._pack((name, value)))
                self._stage.put(FACTS, key, sealed)
            case PutProcess(record=record):
                key = text_key(record.id)
                self._stage.put(PROCESSES, key, codec.seal(key, self._pack(record)))
            case DropProcess(id=name):
                self._stage.put(PROCESSES, text_key(name), None)
            case _:
                assert_never(operation)

    # ------------------------------------------------------------ append: must be fast

    def _append(self, append: Append) -> None:
        name = append.session
        stored, row = self._rows.read(name)
        self._require_order(append, row)
        key = row.key if row else session_key(name)
        seq: int = append.expected_seq
        lsns = row.open_lsns if row else b""
        for record in append.records:
            lsn = lsn_key(self.next_lsn)
            payload = self._pack((name, seq, type(record).__name__, codec.values_of(record)))
            self._stage.put(LOG, lsn, codec.seal(lsn, payload))
            self.next_lsn += 1
            seq += 1
            lsns += lsn
            if len(lsns) == CHUNK_SIZE:
                self._put_chunk(key, seq // CHUNK - 1, lsns)
                lsns = b""
        if append.seen is not None:
            self._see(append.seen)
        if append.bind is not None:
            self._bind(key, name, append.bind)
        self._rows.put(name, stored, self._row(key, append, lsns))

    @staticmethod
    def _require_order(append: Append, row: Row | None) -> None:
        next_seq = 0
        if row is not None:
            next_seq = row.next_seq
            if append.epoch < row.epoch:
                raise StaleOwnerError(f"session {append.session} belongs to epoch {row.epoch}, not {append.epoch}")
        elif append.expected_seq:
            raise UnknownSessionError(f"there is no session {append.session} (any more)")
        if append.expected_seq != next_seq:
            raise SequenceConflictError(f"session {append.session} is at {next_seq}, not {append.expected_seq}")
        if append.head.id != append.session or append.head.next_seq != next_seq + len(append.records):
            raise StorageError(f"the head of session {append.session} does not fit its records")

    def _see(self, seen: Seen, *, latest: bool = False) -> None:
        key = text_key(seen.key)
        value = None if latest else self._stage.get(INBOX, key)
        if value is not None:
            raise AlreadySeenError(codec.open_as(Seen, key, value))  # or DamagedError
        self._stage.put(INBOX, key, codec.seal(key, self._pack(seen)))

    def _bind(self, session: bytes, name: SessionId, meant: SessionKey) -> None:
        key = text_key(meant)
        for other in bound_sessions(self._stage, key):
            self._stage.put(BOUND, bound_key(other, key), None)
        self._stage.put(KEYS, key, codec.seal(key, self._pack(name)))
        self._stage.put(BOUND, bound_key(session, key), b"")

    def _row(self, key: bytes, write: Append | Restore, open_lsns: bytes) -> Row:
        head = write.head
        place, due = recent_key(key, head.active_at), due_place(key, write.due)
        return Row(
            key, head.next_seq, write.epoch, place, write.pending, open_lsns, self._pack(codec.values_of(head)), due
        )

    def _put_chunk(self, session: bytes, number: int, lsns: bytes) -> None:
        key = index_key(session, number)
        self._stage.put(INDEX, key, codec.seal(key, lsns))

    def _set_due(self, wish: SetDue) -> None:
        stored, row = self._rows.read(wish.session)
        if row is None:
            raise UnknownSessionError(f"there is no session {wish.session} (any more)")
        if wish.expected_seq != row.next_seq:
            raise SequenceConflictError(f"session {wish.session} is at {row.next_seq}, not {wish.expected_seq}")
        self._rows.put(wish.session, stored, replace(row, due=due_place(row.key, wish.due)))

    # ------------------------------------------------------------ rare operations: these may read a whole table

    def _restore(self, restore: Restore) -> None:
        head = restore.head
        key = session_key(head.id)
        stored, row = self._read_or_missing(head.id)
        if row is not None and restore.epoch < row.epoch:
            raise StaleOwnerError(f"session {head.id} belongs to epoch {row.epoch}, not {restore.epoch}")
        found = dict(self._find(head.id))
        if not found:
            raise UnknownSessionError(f"there is no record of a session {head.id}")
        self._stage.get(SESSIONS, key)  # raises LostPageError here instead of at the commit
        if head.next_seq != max(found) + 1:
            raise SequenceConflictError(f"session {head.id} is at {max(found) + 1}, not {head.next_seq}")
        self._clear_indexes(key, stored)
        lsns = b"".join(found.get(Seq(seq), NO_LSN) for seq in range(head.next_seq))
        for number in range(head.next_seq // CHUNK):
            self._put_chunk(key, number, lsns[:CHUNK_SIZE])
            lsns = lsns[CHUNK_SIZE:]
        self._rows.put(head.id, stored, self._row(key, restore, lsns))

    def _erase(self, erase: Erase) -> None:
        name = erase.session
        key = session_key(name)
        stored, row = self._read_or_missing(name)
        if row is None and (stored is not None or self._stage.get(SESSIONS, key) is None):
            raise UnknownSessionError(f"there is no session {name} (any more)")
        if row is not None and erase.expected_seq not in (None, row.next_seq):
            raise SequenceConflictError(f"session {name} is at {row.next_seq}, not {erase.expected_seq}")
        for lsn in self._lsns(name, row):
            with suppress(LostPageError):  # it cannot be deleted either, and nothing refers to it any more
                self._stage.get(LOG, lsn)
                self._stage.put(LOG, lsn, None)
                self._stage.put(BAD, lsn, None)
        for place, _ in self._stage.scan(BOUND, prefix_of(key)):
            self._stage.put(KEYS, place.partition(b"\0")[2], None)
            self._stage.put(BOUND, place, None)
        self._clear_indexes(key, stored)
        self._rows.put(name, stored, None)
        self._outbox.erase(name)

    def _read_or_missing(self, session: SessionId) -> Change:
        """Return the stored and the current row; a damaged row counts as missing."""
        try:
            return self._rows.read(session)
        except BadRowError:
            return None, None

    def _lsns(self, session: SessionId, row: Row | None) -> list[bytes]:
        if row is not None:
            with suppress(BadRowError):
                return list(read_lsns(self._stage.get, row, 0, row.next_seq))
        return [lsn for _, lsn in self._find(session)]

    def _clear_indexes(self, key: bytes, stored: Row | None) -> None:
        for place, _ in self._stage.scan(INDEX, prefix_of(key)):
            self._stage.put(INDEX, place, None)
        if stored is None:  # its keys are unknown: search them
            for table in (RECENT, DUE):
                for place, _ in self._stage.scan(table):
                    if session_of_recent(place) == key:
                        self._stage.put(table, place, None)

    def _find(self, session: SessionId) -> Iterator[tuple[Seq, bytes]]:
        for lsn, entry in find_records(self._stage.scan(LOG), session):
            yield entry.seq, lsn

    def _count(self, tally: Tally) -> None:
        key = tally_key(tally.day, tally.model, tally.platform, tally.guest)
        try:
            before = self._stage.get(TALLY, key)
        except LostPageError as error:  # it cannot be written either; the turn matters more
            logger.error("storage: the usage of {} was not counted: {}", tally.day, error)
            return
        if before is not None:
            with suppress(DamagedError, UnreadableError):  # the earlier count is lost
                earlier = codec.open_as(Tally, key, before)
                tally = replace(tally, usage=earlier.usage + tally.usage, turns=earlier.turns + tally.turns)
        self._stage.put(TALLY, key, codec.seal(key, self._pack(tally)))

    def _forget(self, forget: ForgetSeen) -> None:
        for checked, (kind, table, key, value) in enumerate(self._from(self.forget_from)):
            if checked == forget.limit:
                self.forget_from = table.encode() + b" " + key
                return
            if _time_of(kind, key, value) < forget.before:
                self._stage.put(table, key, None)
        self.forget_from = b""  # the last one: start with the first next time

    def _from(self, place: bytes) -> Iterator[tuple[type[Seen | DeliveredMessage], str, bytes, bytes]]:
        """Yield the entries that expire, from a place on."""
        first, _, start = place.partition(b" ")
        for kind, table in ((Seen, INBOX), (DeliveredMessage, SENT)):
            if first in (b"", table.encode()):
                yield from ((kind, table, *pair) for pair in self._stage.scan(table, start=start))
                first = start = b""


def bound_sessions(source: TableSource, key: bytes) -> list[bytes]:
    """Return the session that a key is bound to: none or one, or all candidates if its value is damaged."""
    try:
        value = source.get(KEYS, key)
        if value is None:
            return []
        return [session_key(codec.unpack(codec.unseal(key, value)))]
    except (DamagedError, UnreadableError):
        places = (place.partition(b"\0") for place, _ in source.scan(BOUND))
        return [session for session, _, meant in places if meant == key]


def _time_of(kind: type[Seen | DeliveredMessage], key: bytes, value: bytes) -> float:
    try:
        return codec.open_as(kind, key, value).at
    except (DamagedError, UnreadableError):
        return 0.0  # damaged: expires with the oldest
