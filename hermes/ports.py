"""The seams: what actors, adapters, storage and agent expect of each other. Roles here, technology elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from hermes.errors import HermesError
from hermes.events import Event, TurnOutcome
from hermes.records import LogEntry, Record
from hermes.types import (
    DeadLetter,
    EncodedMessage,
    Epoch,
    Failure,
    InboundKey,
    Seen,
    Seq,
    Session,
    SessionId,
    SessionKey,
    Source,
    TurnId,
    Usage,
)
from hermes.values import dataclass

T = TypeVar("T")

# ---------------------------------------------------------------- storage: what can be asked of the journal


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """Write a session's row anew from what its log says, after the row was found damaged."""

    head: Session
    epoch: Epoch
    pending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Erase:
    """Forget a session: log, row, keys that mean it, its place in every index."""

    session: SessionId


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


Operation: TypeAlias = Append | Restore | Erase | SetAside | DropDeadLetter | ForgetSeen
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
    size_bytes: int  # on disk
    used_bytes: int  # by live pages
    map_bytes: int
    free_disk_bytes: int
    readers: int
    commits: int  # since this process opened it
    transactions: int
    last_commit_s: float


class Reader(Protocol):
    """Blocking and thread-safe; each call is its own short look. Never called on the event loop."""

    def head(self, session: SessionId) -> Session | None: ...  # raises BadRowError
    def bound(self, key: SessionKey) -> SessionId | None: ...
    def log(self, session: SessionId, first: Seq = Seq(0), limit: int | None = None) -> list[LogEntry]: ...
    def salvage(self, session: SessionId) -> list[LogEntry]: ...  # by reading the whole log
    def seen(self, key: InboundKey) -> Seen | None: ...
    def pending(self) -> list[SessionId]: ...
    def recent(self, limit: int, after: SessionId | None = None) -> list[Session]: ...  # last active first
    def dead_letters(self) -> list[DeadLetter]: ...
    def stats(self) -> StoreStats: ...


class Engine(Reader, Protocol):
    """A store. Writes come from one thread only; reads from any."""

    @property
    def epoch(self) -> Epoch: ...
    def commit(self, batch: Sequence[Transaction]) -> list[HermesError | None]:
        """All of the batch in one durable commit; a refused transaction leaves no trace and spares the others.

        Raises StorageFullError (nothing of the batch is stored) or StorageFailedError (stop using it).
        """

    def backup(self, target: Path) -> None: ...
    def close(self) -> None: ...


class Journal(Protocol):
    """The engine as the event loop sees it: nothing here waits; `then` is called later, on the loop."""

    @property
    def epoch(self) -> Epoch: ...
    def commit(self, transaction: Transaction, then: Callable[[HermesError | None], None]) -> None: ...
    def read(self, query: Callable[[Reader], T], then: Callable[[T | None, HermesError | None], None]) -> None: ...


# ---------------------------------------------------------------- agent: who answers


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    session: SessionId
    messages: Sequence[EncodedMessage]
    options: bytes = b"{}"  # a JSON object of sampling options, sent on as they are


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelText:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDone:
    """The model said it had finished. A stream that ends without this is a failure."""

    finish_reason: str
    model: str
    usage: Usage = Usage()
    tool_calls: tuple[Mapping[str, Any], ...] = ()


ModelChunk: TypeAlias = ModelText | ModelDone


class Model(Protocol):
    @property
    def name(self) -> str: ...
    def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Raises ModelError; its failure's kind says whether another try makes sense."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnJob:
    session: SessionId
    turn: TurnId
    attempt: int
    messages: Sequence[EncodedMessage]
    options: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReport:
    """How a turn's work came out; exactly one for each job that was not cancelled."""

    turn: TurnId
    attempt: int
    text: str = ""
    model: str = ""
    finish_reason: str = ""
    usage: Usage = Usage()
    failure: Failure | None = None  # set: there is no answer


class TurnHandle(Protocol):
    def cancel(self) -> None:
        """End the work. No report follows."""


class Turns(Protocol):
    """Runs turns as tasks that it holds itself. Reports come back on the loop."""

    def start(self, job: TurnJob, report: Callable[[TurnReport], None]) -> TurnHandle: ...


# ---------------------------------------------------------------- live events


class Subscription(Protocol):
    """A bounded feed of live events. A reader that falls behind by more than its bound is told by `lagged`."""

    lagged: bool

    def __aiter__(self) -> Self: ...
    async def __anext__(self) -> Event: ...
    def waiting(self) -> list[Event]:
        """Take what has already arrived, without waiting."""

    def close(self) -> None: ...


class Hub(Protocol):
    def publish(self, event: Event) -> None: ...
    def subscribe(self, *, turn: TurnId | None = None, session: SessionId | None = None) -> Subscription:
        """Feed of one turn, of one session, or of everything."""


# ---------------------------------------------------------------- sessions, as adapters see them


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A person's message on its way in. `session` or `key` says which conversation; neither: a fresh one."""

    turn: TurnId
    messages: tuple[EncodedMessage, ...]  # earlier history first, if the sender brings it; the new one last
    source: Source
    session: SessionId | None = None
    key: SessionKey | None = None
    options: bytes = b"{}"
    inbound: InboundKey | None = None  # the source's own id of it, for exactly-once
    fingerprint: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The message is durable. A duplicate's receipt names the turn that was accepted the first time."""

    session: SessionId
    turn: TurnId
    position: int = 0  # how many turns go first
    duplicate: bool = False
    notice: str = ""  # for the person: why this is a fresh session, say


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    session: Session
    why: str
    lineage: tuple[SessionId, ...]  # oldest ancestor first, this session last
    live: bool  # an actor holds it in memory
    mailbox: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    seq: Seq
    at: float
    turn: TurnId
    message: EncodedMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorView:
    kind: str
    name: str
    state: str  # "running", "stopping", "parked"; of a session its phase
    mailbox: int
    oldest_s: float  # age of the oldest waiting message
    handled: int
    slowest_s: float
    age_s: float
    last_error: str = ""


class Sessions(Protocol):
    """The front desk. Each call raises HermesErrors only."""

    async def submit(self, submission: Submission) -> Receipt: ...
    async def outcome(self, session: SessionId, turn: TurnId) -> TurnOutcome | None:
        """What the journal says about a turn; None while it has not ended."""

    async def view(self, session: SessionId) -> SessionView: ...  # the live end of that id's lineage
    async def messages(self, session: SessionId, after: Seq | None, limit: int) -> list[StoredMessage]:
        """The transcript after that place, oldest first; `after=None` means the last of it.

        About `limit` of them: fewer when they are large, more when several share the last place.
        """

    async def recent(self, limit: int, after: SessionId | None = None) -> list[Session]: ...
    async def stop_turn(self, session: SessionId, reason: str, turn: TurnId | None = None) -> Session: ...
    async def end(self, session: SessionId, reason: str) -> Session: ...
    async def suspend(self, session: SessionId, reason: str) -> Session: ...
    async def resume(self, session: SessionId, reason: str) -> Session: ...
    async def erase(self, session: SessionId) -> None: ...
    async def dead_letters(self) -> list[DeadLetter]: ...
    async def replay(self, dead_letter: str) -> Receipt: ...


class Operations(Protocol):
    """What an operator can ask of the daemon as a whole."""

    def actors(self) -> list[ActorView]: ...
    async def store_stats(self) -> StoreStats: ...
    async def backup(self, target: Path) -> None: ...
    async def verify(self) -> list[str]:
        """Problems of the store in plain words; none is an empty list."""

    def ready(self) -> str:
        """Empty when the daemon can take work, else the reason why not."""

    def info(self) -> Mapping[str, Any]: ...  # version, pid, uptime, model, address
    def request_stop(self, reason: str) -> None: ...


# ---------------------------------------------------------------- supervision


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Park:
    reason: str


class RestartPolicy(Protocol):
    def __call__(self, deaths: Sequence[float], now: float) -> Restart | Park:
        """What to do with a child that died at these times (the last one is now)."""


Clock: TypeAlias = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Where new ids come from, so that tests can foresee them."""

    session: Callable[[float], SessionId]  # takes the time
    turn: Callable[[], TurnId]
