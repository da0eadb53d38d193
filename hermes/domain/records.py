"""What the journal can hold. A session's state and its transcript are both folds over these.

A record is never changed once written. New fields get defaults; a field never changes its meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from hermes.domain.access.role import Role
from hermes.domain.types import (
    Call,
    CallOutcome,
    CompressionCause,
    CompressionEnd,
    EncodedMessage,
    EndCause,
    Failure,
    HoldCause,
    InboundKey,
    InterruptionCause,
    MessageOrigin,
    Place,
    Preferences,
    SessionId,
    SessionKey,
    Source,
    SuspendCause,
    Turn,
    TurnId,
    Usage,
)
from hermes.domain.values import dataclass

if TYPE_CHECKING:
    from hermes.domain.types import Seq


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStarted:
    at: float
    key: SessionKey
    source: Source
    reason: str
    parent: SessionId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageReceived:
    """What a person said, with whatever history came along. The last message is the new one."""

    at: float
    turn: TurnId
    messages: tuple[EncodedMessage, ...]
    source: Source
    options: bytes = b"{}"
    steer: bool = False
    inbound: InboundKey | None = None  # under which it was taken, once


@dataclass(frozen=True, slots=True, kw_only=True)
class Amended:
    """What a person said has changed while it waits: more of it came, or they wrote its first message anew."""

    at: float
    turn: TurnId
    messages: tuple[EncodedMessage, ...]
    replaces: bool = False
    inbound: InboundKey | None = None  # under which it was taken, once
    role: Role | None = None  # of whoever changed it; None: stored before there were roles


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    """From here on the turn's messages are part of the transcript, and so is the note, which is for the model."""

    at: float
    turn: TurnId
    attempt: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A message did not get a turn of its own: from here on it is part of another one.

    A hidden one was no news for the model: the answer to a question, say, which stands with its call.
    """

    at: float
    turn: TurnId
    into: TurnId
    hidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBuilt:
    """The system prompt, which stays as it is to the letter until it is built anew."""

    at: float
    message: EncodedMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReplied:
    """The model answered in the middle of a turn: it asks for tools."""

    at: float
    turn: TurnId
    message: EncodedMessage
    calls: tuple[Call, ...]
    model: str
    usage: Usage = Usage()
    context_tokens: int = 0
    waited_s: float = 0.0  # of its time, while the model answered others


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRetried:
    """A model call failed and is made again, after a pause or by the next model."""

    at: float
    turn: TurnId
    model: str
    failure: Failure
    tries: int  # of that model, this one included
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted:
    """Written before the call runs: from here on it may have had effects."""

    at: float
    turn: TurnId
    call: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished:
    """Written before the model sees it."""

    at: float
    turn: TurnId
    call: str
    message: EncodedMessage
    outcome: CallOutcome
    took_s: float = 0.0
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A call waits for a person: for leave to run, or for the answer to its question."""

    at: float
    turn: TurnId
    call: str
    question: str
    choices: tuple[str, ...] = ()
    routed: bool = False  # the owner and the admins are asked, not the person whose turn it is
    asked_in: tuple[Place, ...] = ()  # where they are; none: nobody knows a chat of theirs
    cut: bool = False  # it shows the beginning only
    file: str = ""  # path of a file that shows all of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    at: float
    turn: TurnId
    call: str
    answer: str
    by: str = ""
    role: Role | None = None  # of whoever answered; None: stored before there were roles
    name: str = ""  # of the same person


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFinished:
    at: float
    turn: TurnId
    message: EncodedMessage
    model: str
    finish_reason: str
    usage: Usage = Usage()  # of the last model call; the others stand with theirs
    context_tokens: int = 0
    waited_s: float = 0.0  # of its time, while the model answered others


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed:
    at: float
    turn: TurnId
    failure: Failure
    told: bool = False  # whoever said it knows already, by what ended it


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInterrupted:
    """The turn was interrupted and is to be continued."""

    at: float
    turn: TurnId
    reason: str
    cause: InterruptionCause = InterruptionCause.UNKNOWN
    hold: HoldCause = HoldCause.NONE  # it waits for the person's next message


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedResumePending:
    """A stop was announced while a turn ran: if it does not finish in time, it continues after the start."""

    at: float
    reason: str
    written: str = ""  # how much of the model's next answer was there
    cause: InterruptionCause = InterruptionCause.UNKNOWN
    by: str = ""  # platform and user of the person who asked for the stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspended:
    at: float
    reason: str
    cause: SuspendCause = SuspendCause.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    at: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """With a notice, which may be empty, it was a reset: whoever writes next is told that."""

    at: float
    reason: str
    notice: str | None = None
    cause: EndCause = EndCause.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetBlocked:
    """A reset is due and does not happen, since these background processes work. Written when they change."""

    at: float
    by: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """The conversation went on in another session."""

    at: float
    successor: SessionId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferred:
    """A person chose how this conversation is to go on."""

    at: float
    preferences: Preferences
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """The transcript goes back: what became visible with record `seq`, from its `offset`-th message on, is hidden."""

    at: float
    seq: int
    offset: int
    turns: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionStarted:
    at: float
    reason: str
    focus: str = ""
    cause: CompressionCause = CompressionCause.FULL


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionFailed:
    """Nothing was lost and nothing dropped: the session goes on as it was."""

    at: float
    reason: str
    counts: bool = True  # an automatic try failed: the next one waits longer
    end: CompressionEnd = CompressionEnd.FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCarried:
    """What a session takes over from the one it grew out of, in the transaction that begins it."""

    at: float
    origin: SessionId
    root: SessionId
    messages: tuple[EncodedMessage, ...]
    preferences: Preferences
    grants: tuple[str, ...] = ()
    prompt: EncodedMessage | None = None
    turn: Turn | None = None  # goes on here
    waiting: tuple[MessageReceived, ...] = ()
    owner: str = ""
    active_at: float = 0.0
    turns: int = 0
    usage: Usage = Usage()
    summary_usage: Usage = Usage()  # what it took to make, and is part of `usage`
    summary_model: str = ""
    place: Place | None = None
    origins: tuple[MessageOrigin, ...] = ()  # one for each of `messages`; none: stored by a version without them
    starts: tuple[int, ...] = ()  # indexes of the messages that begin a turn


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorityDropped:
    """Preferences, grants and the system prompt hold no longer: they came from a file that nobody vouches for."""

    at: float
    reason: str


Record: TypeAlias = (
    SessionStarted
    | MessageReceived
    | Amended
    | TurnStarted
    | Merged
    | PromptBuilt
    | ModelReplied
    | ModelRetried
    | ToolStarted
    | ToolFinished
    | Asked
    | Answered
    | TurnFinished
    | TurnFailed
    | TurnInterrupted
    | MarkedResumePending
    | Suspended
    | Resumed
    | Ended
    | ResetBlocked
    | Continued
    | Preferred
    | Undone
    | CompressionStarted
    | CompressionFailed
    | ContextCarried
    | AuthorityDropped
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRecord:
    """A record that failed its checksum or cannot be read. It was set aside; its session goes on."""

    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    seq: Seq
    record: Record | BadRecord
