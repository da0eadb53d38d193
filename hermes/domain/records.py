"""Records of the journal. A session's state and its transcript are folds over them.

A record is never changed once written. New fields get defaults; a field never changes its meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from hermes.domain.access.role import Role
from hermes.domain.cause.cause import (
    CompressionCause,
    CompressionEnd,
    EndCause,
    HoldCause,
    InterruptionCause,
    SuspendCause,
)
from hermes.domain.child.child import Assignment, Purpose
from hermes.domain.goal.goal import Goal
from hermes.domain.history.message_chain import NO_CHAIN, Chain
from hermes.domain.ids import InboundKey, SessionId, SessionKey, TurnId
from hermes.domain.session.state import Preferences, Turn
from hermes.domain.source import Handover, Place, Source
from hermes.domain.turn.message import EncodedMessage, MessageOrigin
from hermes.domain.turn.tool_call import Call, CallOutcome
from hermes.domain.turn.turn_failure import Failure
from hermes.domain.turn.usage import Usage
from hermes.domain.values import dataclass

if TYPE_CHECKING:
    from hermes.domain.ids import Seq


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStarted:
    at: float
    key: SessionKey
    source: Source
    reason: str
    parent: SessionId | None = None
    assignment: Assignment | None = None  # of a child session


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageReceived:
    """A message was accepted, with any history that came along. The last message is the new one."""

    at: float
    turn: TurnId
    messages: tuple[EncodedMessage, ...]
    source: Source
    options: bytes = b"{}"
    steer: bool = False
    inbound: InboundKey | None = None  # under which it was taken, once
    chain: Chain = NO_CHAIN  # of the client's history with this message
    results: tuple[str, ...] = ()  # calls whose results are the first of `messages`; the client ran them


@dataclass(frozen=True, slots=True, kw_only=True)
class Amended:
    """A queued message has changed: its rest arrived, or the person edited its first part."""

    at: float
    turn: TurnId
    messages: tuple[EncodedMessage, ...]
    replaces: bool = False
    inbound: InboundKey | None = None  # under which it was taken, once
    role: Role | None = None  # of the person who changed it; None: stored before there were roles


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    """A turn started. Its messages and the note to the model become part of the transcript."""

    at: float
    turn: TurnId
    attempt: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A message became part of another turn and gets no turn of its own.

    A hidden one does not enter the transcript: for example the answer to a question, which is the call's result.
    """

    at: float
    turn: TurnId
    into: TurnId
    hidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBuilt:
    """System prompt. It stays unchanged until it is built again."""

    at: float
    message: EncodedMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Instructed:
    """The client gave its own instructions, which are added to the system prompt. Empty: it gave none."""

    at: float
    message: EncodedMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReplied:
    """The model asked for tool calls."""

    at: float
    turn: TurnId
    message: EncodedMessage
    calls: tuple[Call, ...]
    model: str
    usage: Usage = Usage()
    context_tokens: int = 0
    waited_s: float = 0.0  # of its time, while the model answered others
    handed: tuple[Call, ...] = ()  # calls of the same answer that the client runs, after these
    handed_message: EncodedMessage = EncodedMessage(b"")  # the model's message with those calls


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRetried:
    """A model call failed and is retried, after a pause or with the next model."""

    at: float
    turn: TurnId
    model: str
    failure: Failure
    tries: int  # of that model, this one included
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted:
    """A tool call starts. Stored before it runs: from now on it may have had effects."""

    at: float
    turn: TurnId
    call: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerCalled:
    """A script asks for a tool call."""

    at: float
    turn: TurnId
    call: Call
    arguments: str  # JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished:
    """A tool call has a result. Stored before the model gets it."""

    at: float
    turn: TurnId
    call: str
    message: EncodedMessage
    outcome: CallOutcome
    took_s: float = 0.0
    name: str = ""
    spent: Usage = Usage()  # by child sessions that worked for the call; their own records count it, too
    within: str = ""  # call of the script that made this one; the model does not see the message then


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A call waits for a person: for an approval, or for the answer to its question."""

    at: float
    turn: TurnId
    call: str
    question: str
    choices: tuple[str, ...] = ()
    routed: bool = False  # the owner and the admins are asked, not the person whose turn it is
    asked_in: tuple[Place, ...] = ()  # their chats; none: no chat is known
    cut: bool = False  # it shows the beginning only
    file: str = ""  # path of a file that shows all of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    at: float
    turn: TurnId
    call: str
    answer: str
    by: str = ""
    role: Role | None = None  # of the person who answered; None: stored before there were roles
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
    handed: tuple[Call, ...] = ()  # calls in its message, whose results the client sends next


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed:
    at: float
    turn: TurnId
    failure: Failure
    told: bool = False  # the sender knows already


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
    """A stop was announced during a turn. If the turn does not finish in time, it continues after the start."""

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
    """The session ended. A notice, even an empty one, means a reset: the next message is answered with it."""

    at: float
    reason: str
    notice: str | None = None
    cause: EndCause = EndCause.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetBlocked:
    """A due reset waits for background processes that work. Stored when their set changes."""

    at: float
    by: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """The conversation continues in another session."""

    at: float
    successor: SessionId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferred:
    """A person changed the preferences of the session."""

    at: float
    preferences: Preferences
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """Messages were undone: everything from the `offset`-th message of record `seq` on is hidden."""

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
    """A compression failed. The session continues unchanged."""

    at: float
    reason: str
    counts: bool = True  # an automatic try failed: the next one waits longer
    end: CompressionEnd = CompressionEnd.FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCarried:
    """State that a new session takes over from its parent, in the transaction that begins it."""

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
    instructions: EncodedMessage = EncodedMessage(b"")  # of the client
    handed: tuple[Call, ...] = ()  # calls of the last message that the client runs
    posted: tuple[str, ...] = ()  # posts that the model has not seen
    unreviewed_turns: int = 0
    unreviewed_calls: int = 0
    assignment: Assignment | None = None
    goal: Goal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorityDropped:
    """Preferences, grants and the system prompt were dropped: they came from an untrusted file."""

    at: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOver:
    """The conversation moved to another chat. The key of that chat is bound in the same transaction."""

    at: float
    handover: Handover


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """A message was posted into the session's chat without the agent. The next turn shows it to the model."""

    at: float
    id: str  # of the outbox message
    place: Place
    text: str
    shown: str  # the text for the model
    queued: bool = False  # it came to the outbox before


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildStarted:
    """A child session is to be started. The duty to start it is stored in the same transaction."""

    at: float
    turn: TurnId  # that caused it
    child: SessionId
    key: str
    purpose: Purpose
    topics: tuple[str, ...] = ()
    by: str = ""  # person of the turn: platform and user
    name: str = ""
    role: Role | None = None
    call: str = ""  # tool call that waits for it
    number: int = 0  # of the child among those of the call
    task: str = ""  # in the words of the person


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalChanged:
    """The goal of the conversation was set, judged, paused or cleared."""

    at: float
    goal: Goal | None
    reason: str


Record: TypeAlias = (
    SessionStarted
    | MessageReceived
    | Amended
    | TurnStarted
    | Merged
    | PromptBuilt
    | Instructed
    | ModelReplied
    | ModelRetried
    | InnerCalled
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
    | HandedOver
    | Posted
    | ChildStarted
    | GoalChanged
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRecord:
    """A record that failed its checksum or cannot be read. It is kept aside; its session continues."""

    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    seq: Seq
    record: Record | BadRecord
