"""The seams: what actors, adapters, storage and agent expect of each other. Roles here, technology elsewhere."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias, TypeVar, runtime_checkable

from hermes.errors import HermesError
from hermes.events import Event, TurnOutcome
from hermes.processes.process import Chunk, FailedStart, Handle, Look, Lost, ProcessSpec
from hermes.records import LogEntry, Record
from hermes.trace import TraceLine
from hermes.types import (
    Call,
    CallOutcome,
    DeadLetter,
    EncodedMessage,
    Epoch,
    Failure,
    InboundKey,
    Obligation,
    Place,
    Preferences,
    ProcessRecord,
    ProcessView,
    Seen,
    Sent,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Add to what was used on a day, by a model, on a platform."""

    day: str  # YYYY-MM-DD, UTC
    model: str
    platform: str
    usage: Usage
    turns: int = 0


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
    tools: bytes = b""  # a JSON array, or nothing
    model: str = ""  # by name, where the endpoint has several; empty: as configured
    reasoning: str = ""  # how much effort, in the endpoint's words

    def for_another(self) -> ModelRequest:
        """The same, to be asked of another model."""
        return replace(self, model="")


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
class ModelJob:
    """Show the model a transcript, and have it go on."""

    session: SessionId
    root: SessionId  # whose folder the conversation works in
    turn: TurnId
    attempt: int
    replies: int
    messages: Sequence[EncodedMessage]
    options: bytes
    prompt: EncodedMessage | None = None  # None: it is to be built
    platform: str = ""
    preferences: Preferences = Preferences()
    grants: tuple[str, ...] = ()
    spent: Usage = Usage()  # by the session so far
    last: bool = False  # no more tools in this turn


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReport:
    """How it came out; exactly one for each job that was not cancelled."""

    turn: TurnId
    attempt: int
    replies: int
    failure: Failure | None = None  # set: there is no answer
    message: EncodedMessage = EncodedMessage(b"")
    text: str = ""
    model: str = ""
    finish_reason: str = ""
    usage: Usage = Usage()
    calls: tuple[Call, ...] = ()
    prompt: EncodedMessage | None = None
    context_tokens: int = 0
    context_full: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolJob:
    session: SessionId
    root: SessionId
    turn: TurnId
    attempt: int
    call: str
    name: str
    arguments: str  # JSON, as the model wrote it
    platform: str = ""
    permitted: frozenset[str] = frozenset()  # rules that a person has allowed, for this call or for longer
    unasked: bool = False  # the person wants no questions at all


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReport:
    turn: TurnId
    attempt: int
    call: str
    message: EncodedMessage
    outcome: CallOutcome
    took_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryJob:
    """Make a shorter transcript that a conversation can go on from."""

    session: SessionId
    root: SessionId
    messages: Sequence[EncodedMessage]
    focus: str = ""
    preferences: Preferences = Preferences()
    turn: TurnId | None = None  # in flight, and waiting for it


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryReport:
    messages: tuple[EncodedMessage, ...] = ()
    problem: str = ""  # not empty: there is none, and why
    usage: Usage = Usage()
    model: str = ""


class Work(Protocol):
    def cancel(self) -> None:
        """End it. No report follows."""


class Agent(Protocol):
    """Does a session's work as tasks that it holds itself. Reports come back on the loop."""

    def think(self, job: ModelJob, report: Callable[[ModelReport], None]) -> Work: ...
    def act(self, job: ToolJob, report: Callable[[ToolReport], None]) -> Work: ...
    def summarise(self, job: SummaryJob, report: Callable[[SummaryReport], None]) -> Work: ...


# ---------------------------------------------------------------- chat platforms


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What a platform can do, as data."""

    edit: bool = False  # a message can be changed after it was sent
    find: bool = False  # it can be told afterwards whether a message arrived
    typing: bool = False
    buttons: bool = False
    show_every_s: float = 1.0  # how often a growing reply may be shown, in one chat
    splits_at: int = 0  # UTF-16 units at which clients split what people paste; 0: they do not
    files: bool = False  # they can be sent
    delete: bool = False  # a message can be taken away again


class Platform(Protocol):
    """Says things on one chat platform. Everything here raises DeliveryError, and nothing else."""

    @property
    def name(self) -> str: ...
    @property
    def abilities(self) -> Abilities: ...
    def parts(self, text: str) -> Sequence[str]:
        """The text as messages that the platform takes. Pure, never empty; the same text gives the same parts."""

    async def ready(self, place: Place) -> None:
        """Returns when the next message there need not wait for the platform's limits. Nothing is sent by this."""

    async def send(self, obligation: Obligation, text: str) -> str:
        """A new message at the obligation's place, with its choices where it has some. Returns its id."""

    async def send_file(self, obligation: Obligation, path: str, text: str) -> str:
        """A file as a message of its own, with a text that may be empty. Returns its id. Raises UnsendableFileError
        when this one can never be sent; the rest can. Only where the abilities say so.
        """

    async def edit(self, obligation: Obligation, message: str, text: str) -> None:
        """Have a message that was sent say something else. That it says so already is no error."""

    async def delete(self, obligation: Obligation, message: str) -> None:
        """Take a message away that was sent. Only where the abilities say so."""

    async def find(self, obligation: Obligation, part: int) -> str | None:
        """The id of that part if it arrived before; None: it did not. Only where the abilities say so."""

    async def show_typing(self, place: Place) -> None: ...


class ChatAdapter(Protocol):
    """A connection to one platform, both ways."""

    @property
    def platform(self) -> Platform: ...
    async def run(self, edge: ChatEdge) -> None:
        """Take messages in until cancelled. Raises what ended it; it is run again after a while."""

    async def close(self) -> None: ...


class ChatEdge(Protocol):
    """Where an adapter hands over what it took in. When a call returns, it is on disk and may be confirmed."""

    def alive(self) -> None:
        """The platform has answered: that is the proof of health."""

    async def take(self, inbound: Inbound) -> None:
        """A person wrote. Raises StoppingError, BusyError and StorageErrors: then it was not taken, try again."""

    async def chat_moved(self, old: str, new: str) -> None:
        """The platform calls a chat by another id from now on; its conversations go on. Raises as `take` does."""

    async def former_id(self, chat: str) -> str:
        """What a chat that has moved was called at first; empty: it has not. Raises as `take` does."""


class Outgoing(Protocol):
    """What is owed to people without a session. Each call returns when it is on disk."""

    async def oblige(self, owed: Obligation) -> None:
        """Have it said; what was said before under the same id is not said again."""

    async def is_known(self, name: str) -> bool:
        """Whether that was said, or is to be."""

    async def see(self, seen: Seen) -> bool:
        """Whether this inbound id is new; from now on it is not."""

    async def progress(self, name: str) -> Obligation | Sent | DeadLetter | None:
        """How far it has come: on its way, met, or given up; None: nobody knows of it (any more)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that a person has sent, as the platform tells it."""

    kind: str  # image, voice, audio, video or file
    file_id: str  # the platform's own
    name: str = ""  # the sender's; never a path
    media_type: str = ""
    size_bytes: int = 0  # 0: nobody says
    seconds: int = 0  # of sound and pictures that move


@runtime_checkable
class FileSource(Protocol):
    """Where the files that people send can be fetched."""

    def fetch(self, attachment: Attachment) -> AsyncGenerator[bytes, None]:
        """What is in it, piece by piece. Raises PlatformError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """What a person did on a chat platform: wrote a message, a command, or pressed a button."""

    id: InboundKey  # the platform's own, for exactly-once
    place: Place
    user: str
    text: str
    chat_type: str = "dm"  # dm, group, channel or thread
    answers: str = ""  # the token of the button that was pressed; `text` is the choice
    choice: int | None = None  # its number among the choices, where `text` may not be all of it
    user_name: str = ""
    edited: bool = False  # it replaces what the person wrote before as `place.message`
    deleted: bool = False  # the person took back what they wrote as `place.message`
    attachments: tuple[Attachment, ...] = ()
    former_chat: str = ""  # not empty: the chat has moved, and its conversations still bear this id


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
    busy: str = ""  # what it does to a turn in flight: queue, steer or interrupt; empty: as configured
    joins: TurnId | None = None  # it is the rest of that message, which a client split; if that still waits
    more_s: float = 0.0  # how long its turn is held for the rest of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The message is durable. A duplicate's receipt names the turn that was accepted the first time."""

    session: SessionId
    turn: TurnId
    position: int = 0  # how many turns go first
    duplicate: bool = False
    notice: str = ""  # for the person: why this is a fresh session, say
    handling: str = "started"  # or queued, steering, interrupting, joined, answer
    into: TurnId | None = None  # the turn that it is the answer for


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    session: Session
    why: str
    lineage: tuple[SessionId, ...]  # oldest ancestor first, this session last
    live: bool  # an actor holds it in memory
    mailbox: int = 0
    reset: str = ""  # when it will be reset, and what keeps it from that


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    seq: Seq
    at: float
    turn: TurnId
    message: EncodedMessage
    note: bool = False  # of the system: the model has it as a user's message, and nobody said it


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    session: SessionId
    seq: Seq
    record: Record


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
    async def rewrite(self, session: SessionId, place: Place, message: EncodedMessage) -> Session:
        """Replace what a person said at that place. Refused unless it still waits for its turn."""

    async def accepted(self, submission: Submission) -> Receipt | None:
        """The receipt of a message that was accepted before under the same inbound id; None: it was not."""

    async def note_command(self, submission: Submission) -> Receipt | None:
        """Take note of a command's inbound id before it is carried out. Its receipt if it came before."""

    async def outcome(self, session: SessionId, turn: TurnId) -> TurnOutcome | None:
        """What the journal says about a turn; None while it has not ended."""

    async def begin(
        self, source: Source, *, session: SessionId | None = None, key: SessionKey | None = None, title: str = ""
    ) -> Session:
        """A fresh session there, before anybody has said anything in it; the one that is open there, if one is."""

    async def bound(self, key: SessionKey) -> SessionId | None: ...  # what the key means now
    async def conversation(self, session: SessionId) -> Session:
        """That very session, or what it was compressed into: not a fresh one that was begun after it."""

    async def view(self, session: SessionId, *, exact: bool = False) -> SessionView:
        """The live end of that id's lineage; `exact`: that very session."""

    async def messages(
        self, session: SessionId, after: Seq | None, limit: int, *, exact: bool = False
    ) -> list[StoredMessage]:
        """The transcript after that place, oldest first; `after=None` means the last of it.

        About `limit` of them: fewer when they are large, more when several share the last place.
        """

    async def recent(self, limit: int, after: SessionId | None = None) -> list[Session]: ...
    async def stop_turn(self, session: SessionId, reason: str, turn: TurnId | None = None) -> Session: ...
    async def end(self, session: SessionId, reason: str) -> Session: ...
    async def suspend(self, session: SessionId, reason: str) -> Session: ...
    async def resume(self, session: SessionId, reason: str, key: SessionKey | None = None) -> Session: ...
    async def answer(self, session: SessionId, answer: str, source: Source, call: str = "") -> Session: ...
    async def prefer(self, session: SessionId, name: str, value: str | bool, reason: str) -> Session: ...
    async def compress(self, session: SessionId, focus: str = "") -> Session: ...
    async def branch(
        self, session: SessionId, title: str = "", *, move_key: bool = False, after: TurnId | None = None
    ) -> Session:
        """A session of its own that begins with a copy of this one: whole, or up to the end of that turn."""

    async def undo(self, session: SessionId, turns: int = 1) -> Session: ...
    async def retry(self, session: SessionId, turn: TurnId, source: Source) -> Receipt: ...
    async def used(self, first_day: str) -> list[Tally]: ...
    async def records(self, session: SessionId, turn: TurnId) -> list[TurnRecord]: ...
    async def trace(self, name: str, limit: int) -> list[TraceLine]:
        """What became of a message, by any id of it, or of the last messages of a session; oldest first."""

    async def fact(self, name: str) -> bytes | None: ...
    async def remember(self, name: str, value: bytes | None) -> None: ...
    async def granted(self) -> list[str]: ...  # kinds of commands that were allowed for good
    async def withdraw(self, kind: str) -> None: ...
    async def erase(self, session: SessionId) -> None: ...
    async def dead_letters(self) -> list[DeadLetter]: ...
    async def replay(self, dead_letter: str) -> Receipt: ...


# ---------------------------------------------------------------- background processes


class Processes(Protocol):
    """Background processes, as everyone sees them: one list, from memory, on the loop."""

    def views(self, root: SessionId | None = None) -> tuple[ProcessView, ...]:
        """Those of a conversation, by the first session of its lineage; None: all there are."""


class ProcessList(Processes, Protocol):
    """The list, and what a person can do with it."""

    async def listed(self, session: SessionId) -> tuple[ProcessView, ...]:
        """Those of that session and of all it grew from, the oldest first."""

    def blocks(self, view: ProcessView) -> str:
        """Why a reset waits for it; empty: it does not."""

    def explain(self, view: ProcessView) -> str:
        """Its age, what it did, and whether and why a reset waits for it."""

    async def output(self, process: str, offset: int, limit: int) -> Chunk: ...
    async def tail(self, process: str, limit: int) -> Chunk: ...
    async def kill(self, process: str, why: str, *, heard: bool = False) -> ProcessView:
        """Has it ended, with all that it started; answers when that is known, or a while later.

        `why` is shown wherever its end is. `heard`: the answer is its conversation's, which is told nothing more.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOrder:
    """A background process to be started. `environ` is all that it gets."""

    session: SessionId
    command: str  # as it was asked for
    argv: tuple[str, ...]
    cwd: str
    environ: Mapping[str, str] = field(repr=False)
    pty: bool = False
    notify: bool = False
    watch: tuple[str, ...] = ()


class BackgroundProcesses(ProcessList, Protocol):
    """What an agent can do with processes. Each call raises HermesErrors only."""

    async def start(self, order: ProcessOrder) -> ProcessView: ...
    async def write(self, process: str, data: bytes) -> int: ...
    def typed(self, process: str) -> str:
        """What was sent to it since the last newline; nothing for one that is not known. Blocking: for gates."""

    async def close_input(self, process: str) -> None: ...
    async def wait(self, process: str, timeout_s: float) -> ProcessView:
        """How it is when it has ended, which its conversation hears by this; or after that time."""


class ProcessHost(Protocol):
    """The machine that they run on. Everything here blocks, and is for threads."""

    def start(self, spec: ProcessSpec) -> Handle | FailedStart: ...
    def find(self, name: str) -> Handle | Lost: ...
    def look(self, handle: Handle) -> Look: ...
    def look_all(self, handles: Sequence[Handle]) -> dict[str, Look]: ...
    def ports(self, handles: Sequence[Handle]) -> dict[str, tuple[int, ...]]: ...
    def output(self, handle: Handle, offset: int, limit: int) -> Chunk: ...
    def tail(self, handle: Handle, limit: int) -> Chunk: ...
    def write(self, handle: Handle, data: bytes) -> int: ...
    def typed(self, name: str) -> bytes: ...
    def close_input(self, handle: Handle) -> None: ...
    def kill(self, handle: Handle, grace_s: float = 2.0, why: str = "") -> bool: ...
    def end_fd(self, handle: Handle) -> int | None: ...
    def forget(self, handle: Handle | Lost) -> None: ...


# ---------------------------------------------------------------- the daemon as a whole


class Operations(Protocol):
    """What an operator can ask of the daemon as a whole."""

    def actors(self) -> list[ActorView]: ...
    async def store_stats(self) -> StoreStats: ...
    async def backup(self, target: Path) -> None: ...
    async def take_in(self, file: Path) -> Mapping[str, Any]:
        """Import an export. What came of it, for whoever asked."""

    async def verify(self) -> list[str]:
        """Problems of the store in plain words; none is an empty list."""

    def ready(self) -> str:
        """Empty when the daemon can take work, else the reason why not."""

    def info(self) -> Mapping[str, Any]: ...  # version, pid, uptime, model, address
    def request_stop(self, reason: str) -> None: ...
    async def request_restart(self, reason: str) -> None:
        """Refused when it could not come back."""


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
