"""Ids, phases and values that sessions, the journal and the adapters share.

Everything here is immutable. Times are seconds since the epoch, UTC; durations carry `_s` in their name.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NewType

from hermes.domain.access.role import Role, assumed
from hermes.domain.values import dataclass

SessionId = NewType("SessionId", str)
SessionKey = NewType("SessionKey", str)
TurnId = NewType("TurnId", str)
InboundKey = NewType("InboundKey", str)  # "<platform>:<the platform's own id of an update>"
Epoch = NewType("Epoch", int)  # grows by one with each daemon that owns the store
Seq = NewType("Seq", int)  # position of a record in its session's log, from 0
EncodedMessage = NewType("EncodedMessage", bytes)  # one chat message as UTF-8 JSON, encoded once


class Phase(StrEnum):
    IDLE = "idle"
    RUNNING = "running"
    WAITING = "waiting"
    RESUME_PENDING = "resume_pending"
    SUSPENDED = "suspended"
    ENDED = "ended"


class EndCause(StrEnum):
    """Cause of a session's end. The reason beside it is free text and decides nothing."""

    UNKNOWN = ""  # written by a version that kept the reason only
    ASKED = "asked"  # by a person, or by a program for one
    COMPRESSION = "compression"  # the conversation goes on from a summary
    TAKEN_BACK = "taken_back"  # the conversation goes on from before its beginning
    RESET = "reset"


class InterruptionCause(StrEnum):
    """Cause of an interrupted turn. The reason beside it is free text and decides nothing."""

    UNKNOWN = ""  # written by a version that stored the reason only
    CRASH = "crash"  # the daemon ended unexpectedly
    ACTOR_CRASH = "actor_crash"
    SHUTDOWN = "shutdown"
    RESTART = "restart"
    SUSPENDED = "suspended"  # an operator suspended the session


class HoldCause(StrEnum):
    """Cause why an interrupted turn waits for the person's next message."""

    NONE = ""  # it continues without a message
    CONFIGURED = "configured"  # by `resume.when`
    CRASHES = "crashes"  # the daemon crashes repeatedly


class SuspendCause(StrEnum):
    """Cause of a session's suspension."""

    UNKNOWN = ""  # written by a version that stored the reason only
    ASKED = "asked"
    INTERRUPTIONS = "interruptions"  # too many in a row
    IMPORTED = "imported"  # its work was open when it was exported


class StopCause(StrEnum):
    """Cause of a turn's stop."""

    UNKNOWN = ""  # the turn was not stopped, or a version without causes stored it
    ASKED = "asked"
    NEW_MESSAGE = "new_message"
    SESSION_ENDED = "session_ended"
    SESSION_DELETED = "session_deleted"


class MessageOrigin(StrEnum):
    """Author of a message in a transcript."""

    OTHER = ""  # the model or a tool
    PERSON = "person"
    PROCESS = "process"  # a background process reports; the message may begin a turn
    NOTE = "note"  # Hermes itself: a note to the model, or a summary


class CompressionCause(StrEnum):
    """Cause of a compression."""

    FULL = "full"  # the context is nearly full
    OVERFLOW = "overflow"  # a turn no longer fits
    ASKED = "asked"  # a person wants it


class CompressionEnd(StrEnum):
    """End of a compression that changed nothing."""

    FAILED = "failed"
    STOPPED = "stopped"  # by a person
    INTERRUPTED = "interrupted"  # the daemon stopped


class FailureKind(StrEnum):
    """Kind of a turn's failure."""

    AUTH = "auth"
    BILLING = "billing"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    CONTEXT_OVERFLOW = "context_overflow"
    BAD_REQUEST = "bad_request"
    MALFORMED_REPLY = "malformed_reply"
    POLICY = "policy"
    UNSUPPORTED = "unsupported"
    BUDGET = "budget"  # what may be spent has been spent
    CANCELLED = "cancelled"
    SUSPENDED = "suspended"  # not ended: it goes on when its session is resumed
    INTERNAL = "internal"


class FailureCause(StrEnum):
    """Problem between Hermes and a model endpoint."""

    NONE = ""  # not known, or there is no endpoint
    REFUSED = "refused"
    UNKNOWN_HOST = "unknown_host"
    TLS = "tls"
    TIMEOUT = "timeout"
    BROKEN = "broken"  # the connection ended too early
    UNREACHABLE = "unreachable"
    STATUS = "status"  # the endpoint answered with an HTTP error


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    kind: FailureKind
    message: str
    retry_after_s: float | None = None
    address: str = ""  # of the endpoint, without user name and query
    cause: FailureCause = FailureCause.NONE
    status: int = 0  # of HTTP
    stop: StopCause = StopCause.UNKNOWN  # of a turn that was cancelled
    by: str = ""  # platform and user of the person who stopped it


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Usage that the provider reports. `prompt_tokens` includes the cached ones."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_usd=self.cost_usd + other.cost_usd,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Place on a chat platform."""

    platform: str
    chat: str
    thread: str = ""
    message: str = ""  # what it answers, in the platform's own words


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatContext:
    """Chat and person of a conversation, as the platform reports them. Names are untrusted text."""

    kind: str = ""  # of chat: dm, group, channel or thread
    chat: str = ""  # the chat's name
    person: str = ""  # the person's name, where the conversation is theirs alone
    shared: bool = False  # several people talk in it: what each says begins with their name


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Origin of a message: platform, person and place."""

    platform: str
    user: str = ""
    automatic: bool = False  # no person wrote it: it puts off no reset, and begins no conversation
    place: Place | None = None  # where to send the answer; None: the client waits for it
    company: ChatContext | None = None  # of the conversation that it begins; None: unknown
    role: Role | None = None  # of the person; None: stored before there were roles
    name: str = ""  # of the person, as the platform shows it

    @property
    def standing(self) -> Role:
        """The person's role; the least one where none is stored, except on the owner's own surfaces."""
        return self.role or assumed(self.platform)

    @property
    def by(self) -> str:
        """Return platform and user as one word."""
        return ":".join(filter(None, (self.platform, self.user)))


class Effect(StrEnum):
    """Consequence of running a tool call again, if its outcome was not recorded."""

    PURE = "pure"  # it only reads: run it again
    EFFECT = "effect"  # it may have changed something: never run it again by itself


class Verdict(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    BLOCK = "block"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Verdict about a tool call. `rules`: what a grant for longer would cover; all must be granted."""

    verdict: Verdict = Verdict.ALLOW
    reason: str = ""
    rules: tuple[str, ...] = ()
    once: bool = False  # an approval covers this call only
    findings: tuple[str, ...] = ()  # every reason, the worst first; `reason` has the first ones
    subjects: tuple[str, ...] = ()  # command that each finding is about; empty: the finding is a whole clause


class Approval(StrEnum):
    """Answer to a request for approval."""

    ONCE = "once"
    SESSION = "session"  # everything of that kind, until the conversation ends
    ALWAYS = "always"  # everything of that kind, in every conversation
    DENY = "deny"
    SHOW = "show"  # not a decision: show a shortened request in full


class Handling(StrEnum):
    """Effect of an accepted message."""

    STARTED = "started"
    QUEUED = "queued"
    STEERING = "steering"
    INTERRUPTING = "interrupting"
    JOINED = "joined"  # it is the rest of a queued message
    ANSWER = "answer"  # it answers a waiting call
    DELIVERING = "delivering"  # a dead letter is sent again


class CallState(StrEnum):
    PROPOSED = "proposed"  # the model asked for it
    ASKED = "asked"  # waits for a person
    STARTED = "started"  # may have had effects


class CallOutcome(StrEnum):
    OK = "ok"
    ERROR = "error"
    DENIED = "denied"
    STOPPED = "stopped"  # ended with the turn
    NOT_RUN = "not_run"
    UNKNOWN = "unknown"  # it began, and nothing says how it ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call without an outcome. Its arguments are in the transcript."""

    id: str
    name: str
    summary: str = ""  # one line for people
    state: CallState = CallState.PROPOSED
    parallel: bool = False
    effect: Effect = Effect.EFFECT
    gate: Gate = Gate()
    problem: str = ""  # not empty: it cannot run, and the model gets this text
    question: str = ""  # not empty: it is no work but a question to the person
    choices: tuple[str, ...] = ()
    routed: bool = False  # it was the owner and the admins who were asked, not the person whose turn it is
    asked_in: tuple[Place, ...] = ()  # where they were
    approved_by: str = ""  # name, platform and user, role; empty: no approval was needed
    whole: str = ""  # what runs, to the letter; empty: the summary says all
    whole_file: str = ""  # path of a file with the whole question, where that is too long for a chat
    cut: bool = False  # only the beginning of the question was shown so far


class Busy(StrEnum):
    """Effect of a message that comes while a turn runs."""

    QUEUE = "queue"
    STEER = "steer"
    INTERRUPT = "interrupt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """Choices of a person for one conversation; empty means as configured."""

    title: str = ""
    model: str = ""
    personality: str = ""
    reasoning: str = ""
    busy: str = ""
    yolo: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An accepted message and its work. Its text is in the log."""

    id: TurnId
    accepted_at: float
    attempt: int = 0  # how often it was started
    options: bytes = b"{}"  # model options of this turn, as a JSON object
    steer: bool = False  # merge into the running turn at its next step
    replies: int = 0  # how often the model has answered within this turn
    calls: tuple[Call, ...] = ()  # of its last answer, as far as they have no outcome
    usage: Usage = Usage()
    merged: tuple[TurnId, ...] = ()  # messages that became part of it, whose senders wait for its end
    place: Place | None = None  # where its answer is to be said
    written: str = ""  # how much of the model's answer was there when a stop cut it off
    role: Role | None = None  # the lowest among those whose messages are in it; None: stored before there were roles
    by: str = ""  # who began it: platform and user
    name: str = ""  # of the same person
    several: bool = False  # it has messages of several people


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """State of a session without its transcript: a fold over the session's records."""

    id: SessionId
    key: SessionKey
    phase: Phase
    reason: str  # of the phase, in plain words
    since: float  # of the phase
    created_at: float
    active_at: float  # the last time a person wrote
    next_seq: Seq
    platform: str
    parent: SessionId | None = None
    successor: SessionId | None = None  # where the conversation went on
    turn: Turn | None = None  # in flight, or to be continued
    queue: tuple[Turn, ...] = ()  # accepted, waiting
    resume_reason: str = ""  # not empty: a stop was announced while the turn ran
    interruptions: int = 0  # since the last finished turn
    messages: int = 0
    turns: int = 0
    usage: Usage = Usage()
    last_failure: Failure | None = None
    root: SessionId | None = None  # the oldest ancestor, whose folder it works in; None: itself
    owner: str = ""  # the user who began it, where its platform tells users apart
    preferences: Preferences = Preferences()
    grants: tuple[str, ...] = ()  # rules that its person has allowed for the whole session
    prompted: bool = False  # the log holds its system prompt
    context_tokens: int = 0  # what the model was shown last, and its answer
    compressing: str = ""  # not empty: a summary is being made, and why
    compressing_focus: str = ""
    compression_failures: int = 0  # in a row
    compression_failed_at: float = 0.0
    hidden: tuple[tuple[int, int, int], ...] = ()  # undone: from a record's n-th message up to another record
    compression_problem: str = ""  # of the last failure
    blocked_by: tuple[str, ...] = ()  # background processes for which a due reset waits, as far as it is recorded
    blocked_reason: str = ""
    taken_up_at: float = 0.0  # when it was last resumed
    notice: str | None = None  # not None: it was reset; notice for the next message, may be empty
    place: Place | None = None  # where its person wrote last
    company: ChatContext | None = None  # chat and person, as reported when it began
    end_cause: EndCause = EndCause.UNKNOWN  # of a session that has ended; see `end_cause.py`
    compressing_cause: CompressionCause = CompressionCause.FULL
    compressing_since: float = 0.0
    compression_failed_tokens: int = 0  # size of the context at the last failure
    resume_cause: InterruptionCause = InterruptionCause.UNKNOWN  # of the announced stop
    interruption: InterruptionCause = InterruptionCause.UNKNOWN  # of the interrupted turn; see `legacy_reason.py`


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An accepted inbound id: the same id again is the same turn, also after a crash."""

    key: InboundKey
    session: SessionId
    turn: TurnId
    fingerprint: bytes  # of the request's content; another content under the same id is a client's mistake
    at: float


class OutboxKind(StrEnum):
    """Kind of an outbox message."""

    REPLY = "reply"
    QUESTION = "question"
    NOTICE = "notice"
    SIGN = "sign"  # that a message was heard and waits: shown once, if at all, and never stored


class TurnEnd(StrEnum):
    """End of a turn."""

    ANSWERED = "answered"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxMessage:
    """Message to a chat platform, until the platform has confirmed it.

    A streamed reply and its final text are one outbox message. Without text and files there is
    nothing to say, unless a part of it is shown already. The last fields are the delivery's.
    """

    id: str  # deterministic: the same content has the same id
    kind: OutboxKind
    place: Place
    text: str
    at: float
    session: SessionId | None = None
    turn: TurnId | None = None
    choices: tuple[str, ...] = ()  # of a question
    call: str = ""  # that asks it
    final: bool = True  # False: a turn in flight is shown, and its answer is yet to come
    order: int = 0  # among all, as they came to the store
    sent: tuple[str, ...] = ()  # the platform's ids of the messages that show it, the first part first
    sending: bool = False  # one more was on its way; nothing says yet whether it arrived
    tries: int = 0  # that failed in a row
    problem: str = ""  # of the last try
    repeated: tuple[int, ...] = ()  # parts that may have arrived before, and are marked so
    files: tuple[str, ...] = ()  # paths; they are sent after the text, a message each
    superseded: tuple[str, ...] = ()  # streamed messages, deleted once the whole text is sent again
    end: TurnEnd = TurnEnd.ANSWERED  # of the turn that it replies to
    amends: str = ""  # not empty: id of the outbox message whose text this replaces
    refusals: int = 0  # attempts in a row that the platform refused


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredMessage:
    """An outbox message that was delivered."""

    id: str
    kind: OutboxKind
    place: Place
    at: float  # when it was owed
    sent_at: float
    messages: tuple[str, ...]
    session: SessionId | None = None
    turn: TurnId | None = None
    repeated: bool = False  # a part of it may have arrived twice, and was marked so


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message that crashed its session twice, or one that cannot be delivered. Kept whole, so that it can be
    replayed.
    """

    id: str
    session: SessionId
    turn: TurnId
    messages: tuple[EncodedMessage, ...]
    source: Source
    options: bytes
    problem: str
    at: float
    undelivered: OutboxMessage | None = None  # the outbox message that could not be delivered


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRecord:
    """Stored state of a background process. Written before the process starts, so that none is lost."""

    id: str  # "proc_" and 12 hex digits
    root: SessionId  # whose folder its conversation works in
    session: SessionId  # that started it
    key: SessionKey
    platform: str
    command: str  # a summary, one line
    cwd: str
    started_at: float
    notify: bool = False  # its conversation is notified of its end
    watch: tuple[str, ...] = ()  # words in its output to report
    pty: bool = False
    pid: int = 0  # 0: not known to have started
    active_at: float = 0.0  # about when it last did something
    watched_bytes: int = 0  # of its output, looked through for `watch`
    ended_at: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""  # of its end: exited, killed, memory, processes, output, lost
    detail: str = ""
    output_bytes: int = 0  # at its end
    told: bool = False  # its conversation was notified of its end
    role: Role | None = None  # of the turn that started it; None: stored before there were roles


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessView:
    """View of a background process."""

    id: str
    session: SessionId
    command: str  # a summary, one line
    pid: int
    started_at: float  # from the kernel's own count of its age, so that it moves along when the clock is set
    heartbeat_at: float  # when its actor last saw it alive
    active_at: float  # when it last did something: CPU above a floor, or output
    cpu_s: float = 0.0
    output_bytes: int = 0
    ports: tuple[int, ...] = ()  # that it listens on
    ended_at: float | None = None
    exit_code: int | None = None  # None after its end: unknown
    signal: int | None = None  # that ended it
    reason: str = ""  # of its end: exited, killed, memory, processes, output, lost
    detail: str = ""
    memory_bytes: int = 0
    known: bool = True  # False: this daemon has found it again just now, and cannot tell yet whether it works
    untold: bool = False  # it has ended, and its conversation is not notified yet
    notify: bool = False  # its conversation is notified of its end
