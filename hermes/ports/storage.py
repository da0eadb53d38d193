"""Storage: what can be asked of the journal, what it answers, and who provides it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

from hermes.errors import HermesError
from hermes.records import LogEntry, Record
from hermes.types import (
    DeadLetter,
    Epoch,
    InboundKey,
    Obligation,
    ProcessRecord,
    Seen,
    Sent,
    Seq,
    Session,
    SessionId,
    SessionKey,
    Usage,
)
from hermes.values import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Add records to one session. Refused whole when the session has moved on or has a newer owner."""

    session: SessionId
    expected_seq: Seq  # what the first of the records gets; 0 starts the session
    epoch: Epoch
    records: tuple[Record, ...]
    head: Session  # the session after these records
    pending: bool  # whether start-up must look at this session
    bind: SessionKey | None = None  # from now on this key means this session
    seen: Seen | None = None  # refused with AlreadySeenError if its key was seen before
    due: float | None = None  # when somebody must look at this session again; None: not by the clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """Write a session's row anew from what its log says, after the row was found damaged."""

    head: Session
    epoch: Epoch
    pending: bool
    due: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDue:
    """Have somebody look at a session then, and not when its last append said. Refused if it has moved on since."""

    session: SessionId
    expected_seq: Seq  # what its next record would get
    due: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Erase:
    """Forget a session: log, row, keys that mean it, its place in every index. Refused if it has moved on since."""

    session: SessionId
    expected_seq: Seq | None = None  # what its next record would get; None: wherever it is


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    letter: DeadLetter


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDeadLetter:
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetSeen:
    """Forget inbound ids older than `before`, looking at no more than `limit` of them from where it last stopped."""

    before: float
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Add to what was used on a day, by a model, on a platform."""

    day: str  # YYYY-MM-DD, UTC
    model: str
    platform: str
    usage: Usage
    turns: int = 0
    guest: str = ""  # who used it, if that was a guest: platform and user


@dataclass(frozen=True, slots=True, kw_only=True)
class PutFact:
    """Remember something small under a name; None forgets it."""

    name: str
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PutProcess:
    record: ProcessRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class DropProcess:
    """Forget it; there need not be one."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Oblige:
    """From now on this is to be said. Where it is known already, what was sent of it stays, and so does its text,
    unless this is the final one.
    """

    obligation: Obligation


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteDelivery:
    """How far the delivery of an obligation has come. One that is not known (any more) is left alone."""

    id: str
    sent: tuple[str, ...] = ()
    sending: bool = False
    tries: int = 0
    problem: str = ""
    repeated: tuple[int, ...] = ()
    superseded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Discharge:
    """An obligation was met: the platform has confirmed all of it."""

    sent: Sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Waive:
    """An obligation is none any more; there need not be one."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class See:
    """Take note of an inbound id without a message. Refused with AlreadySeenError if it was seen before."""

    seen: Seen


Operation: TypeAlias = (
    Append
    | Restore
    | SetDue
    | Erase
    | SetAside
    | DropDeadLetter
    | ForgetSeen
    | Tally
    | PutFact
    | PutProcess
    | DropProcess
    | Oblige
    | NoteDelivery
    | Discharge
    | Waive
    | See
)


Transaction: TypeAlias = tuple[Operation, ...]  # all or nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStats:
    engine: str
    path: str
    sessions: int
    records: int
    pending: int
    dead_letters: int
    bad_records: int
    outbox: int  # what is yet to be said
    size_bytes: int  # on disk
    used_bytes: int  # by live pages
    map_bytes: int
    free_disk_bytes: int
    readers: int
    commits: int  # since this process opened it
    transactions: int
    last_commit_s: float


Due: TypeAlias = tuple[float, SessionId]  # a session, and when somebody must look at it


class Reader(Protocol):
    """Blocking and thread-safe; each call is its own short look. Never called on the event loop."""

    def head(self, session: SessionId) -> Session | None: ...  # raises BadRowError
    def bound(self, key: SessionKey) -> SessionId | None: ...
    def log(self, session: SessionId, first: Seq = Seq(0), limit: int | None = None) -> list[LogEntry]: ...
    def salvage(self, session: SessionId) -> list[LogEntry]: ...  # by reading the whole log
    def seen(self, key: InboundKey) -> Seen | None: ...
    def pending(self) -> list[SessionId]: ...
    def recent(self, limit: int, after: SessionId | None = None) -> list[Session]: ...  # last active first
    def due(self, before: float, limit: int, after: Due | None = None) -> list[Due]: ...  # the earliest first
    def due_at(self, session: SessionId) -> float | None: ...  # raises BadRowError
    def dead_letters(self) -> list[DeadLetter]: ...
    def tallies(self, first_day: str) -> list[Tally]: ...  # of that day and later, oldest first
    def fact(self, name: str) -> bytes | None: ...
    def facts(self, prefix: str) -> list[str]: ...  # the names that begin so
    def processes(self) -> list[ProcessRecord]: ...  # by id; a damaged one is left out
    def outbox(self) -> list[Obligation]: ...  # in the order they were made; a damaged one is left out
    def owed(self, obligation: str) -> Obligation | None: ...
    def sent(self, obligation: str) -> Sent | None: ...
    def sent_with(self, message: str) -> list[Sent]: ...  # what a message of that id shows, in whatever chat
    def tail(self, after: int, limit: int) -> list[tuple[int, SessionId, Seq, Record]]:
        """All sessions' records in the order they were written, after that position."""

    def stats(self) -> StoreStats: ...


class Engine(Reader, Protocol):
    """A store. Writes come from one thread only; reads from any."""

    @property
    def epoch(self) -> Epoch: ...
    def commit(self, batch: Sequence[Transaction]) -> list[HermesError | None]:
        """All of the batch in one durable commit; a refused transaction leaves no trace and spares the others.

        Raises StorageFullError (nothing of the batch is stored) or StorageFailedError (stop using it).
        """

    def last_position(self) -> int:
        """The position of the newest record, also after it was erased; see `tail`. Does not block."""

    def backup(self, target: Path) -> None: ...
    def close(self) -> None: ...


class Journal(Protocol):
    """The engine as the event loop sees it: nothing here waits; `then` is called later, on the loop."""

    @property
    def epoch(self) -> Epoch: ...
    def commit(self, transaction: Transaction, then: Callable[[HermesError | None], None]) -> None: ...
    def read(self, query: Callable[[Reader], T], then: Callable[[T | None, HermesError | None], None]) -> None: ...
