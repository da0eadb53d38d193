"""Events of a session, its effects, and the step that joins the two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from hermes.domain.access.role import Role
from hermes.domain.cause.cause import EndCause, HoldCause, InterruptionCause
from hermes.domain.child.child import ChildDuty
from hermes.domain.errors import RefusedError
from hermes.domain.events import Event as LiveEvent
from hermes.domain.goal.goal import Goal, GoalVerdict
from hermes.domain.ids import InboundKey, SessionId, SessionKey, TurnId
from hermes.domain.operations import Tally
from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.records import MessageReceived, Record
from hermes.domain.session.jobs import ModelReport, RetryReport, SummaryReport, ToolReport
from hermes.domain.session.state import Session
from hermes.domain.source import Handover, Place, Source
from hermes.domain.turn.message import EncodedMessage, MessageOrigin
from hermes.domain.turn.submission import Busy, Handling, Seen, Submission
from hermes.domain.turn.tool_call import Call, CallOutcome
from hermes.domain.turn.usage import Usage
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewTerms:
    """When a conversation is reviewed; 0: never."""

    turns: int = 0  # of the person, since the last review for the memory
    calls: int = 0  # of tools, since a skill was used or the last review for skills


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLimits:
    max_queue: int = 32
    max_replies: int = 90  # of the model within one turn
    max_parallel: int = 8  # tool calls at a time
    busy: Busy = Busy.QUEUE
    granted: frozenset[str] = frozenset()  # rules that are allowed in every session
    admins: frozenset[tuple[str, str]] = frozenset()  # platform and user
    approvers: tuple[Place, ...] = ()  # where the owner and the admins are asked for approval
    review: ReviewTerms = ReviewTerms()


# ---------------------------------------------------------------- events


@dataclass(frozen=True, slots=True, kw_only=True)
class StartHeld:
    """The coalesce timer of a held message has expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """A person edited a message. Refused unless the message is still queued."""

    place: Place
    message: EncodedMessage
    role: Role  # of the person who edited it


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Create the session before its first message."""

    source: Source
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A person answers a waiting call: with an `Approval`, or with free text for a question."""

    answer: str
    source: Source
    call: str = ""  # empty: the one that waits


@dataclass(frozen=True, slots=True, kw_only=True)
class CallInside:
    """A script asks for a tool call. `call.within` is the script's call."""

    turn: TurnId
    call: Call
    arguments: str  # JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class EndInside:
    """A tool call of a script has ended."""

    turn: TurnId
    call: str
    message: EncodedMessage
    outcome: CallOutcome
    took_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StopTurn:
    """Stop the running turn, or the named one, which may still be queued."""

    reason: str
    turn: TurnId | None = None
    by: Place | None = None  # chat in which the stop was requested; it gets no notice
    who: str = ""  # platform and user of the person who stops it


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnounceStop:
    """The daemon is about to stop."""

    reason: str
    cause: InterruptionCause = InterruptionCause.SHUTDOWN
    who: str = ""  # platform and user of the person who asked for it
    written: str = ""  # incomplete answer of the model so far


@dataclass(frozen=True, slots=True, kw_only=True)
class Recover:
    """The session is loaded again, and it has open work.

    `cause`: UNKNOWN if nothing was interrupted. `hold`: an interrupted turn waits for the person's next message.
    """

    cause: InterruptionCause = InterruptionCause.UNKNOWN
    hold: HoldCause = HoldCause.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspend:
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Resume a suspended or ended session. `key`, if given, leads to it from now on."""

    reason: str
    key: SessionKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSession:
    reason: str
    successor: SessionId | None = None  # where the conversation goes on
    by: Place | None = None  # chat in which the end was requested; it gets no notice
    who: str = ""  # platform and user of the person who ends it
    cause: EndCause = EndCause.ASKED
    unused_since: float | None = None  # a time: refused if the session was used later, or has open work


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """Move the conversation to another chat, whose key leads to it from now on."""

    handover: Handover


@dataclass(frozen=True, slots=True, kw_only=True)
class NotePost:
    """Send a message into the session's chat without the agent, and show it to the model with the next turn."""

    outgoing: OutboxMessage
    shown: str  # the text for the model
    queued: bool = False  # it is in the outbox already: only show it


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetSession:
    """End the session by its reset policy. Ignored if a person has written since the decision."""

    reason: str
    active_at: float  # what it was judged by
    notice: str  # for the person; empty: none
    left: str = ""  # background processes that stay alive, as text
    end: tuple[str, ...] = ()  # those of them that are to be ended


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteBlocked:
    """A due reset waits for these background processes. Recorded when their set changes."""

    by: tuple[str, ...]
    reason: str
    active_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StartBackground:
    """Start a child session with a person's task beside the conversation."""

    turn: TurnId  # makes the key of the child
    task: str
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class SetGoal:
    """Set, change or clear the goal of the conversation."""

    goal: Goal | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeGoal:
    """A judge's verdict about a turn. Ignored unless the goal is still this one."""

    text: str  # of the goal
    turn: TurnId
    verdict: GoalVerdict
    role: Role | None = None  # of the person who set it


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPreference:
    """Set one of the session's preferences."""

    name: str
    value: str | bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """Undo everything from that place of the transcript on. `again`: then deliver this message."""

    seq: int
    offset: int
    turns: int
    reason: str
    again: Submission | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compress:
    reason: str
    focus: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarised:
    """Summary and kept messages that continue a compressed session."""

    child: SessionId
    messages: tuple[EncodedMessage, ...]
    waiting: tuple[MessageReceived, ...]  # of the session's queue
    reason: str
    usage: Usage = Usage()  # of the summary
    model: str = ""
    origins: tuple[MessageOrigin, ...] = ()  # of `messages`
    starts: tuple[int, ...] = ()  # indexes of the messages that begin a turn
    instructions: EncodedMessage = EncodedMessage(b"")  # of the client


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryFailed:
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Start another session with a copy of this transcript."""

    child: SessionId
    messages: tuple[EncodedMessage, ...]
    prompt: EncodedMessage | None
    title: str
    reason: str
    move_key: bool  # the session's key leads to the new session from now on
    origins: tuple[MessageOrigin, ...] = ()  # of `messages`
    starts: tuple[int, ...] = ()  # indexes of the messages that begin a turn
    instructions: EncodedMessage = EncodedMessage(b"")  # of the client
    handed: tuple[Call, ...] = ()  # calls of the last message that the client runs


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoTurns:
    """Request: undo the last turns. `again`: send the first message of the last one again, as this turn."""

    turns: int
    again: TurnId | None = None
    source: Source = Source(platform="")


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchOff:
    """Request: a new session with a copy of the transcript, without its last `undo` turns. The reply is its id."""

    reason: str
    title: str = ""
    undo: int = 0
    span: tuple[int, int] | None = None  # first and last record of a turn: what came after it is left out
    move_key: bool = False


Request: TypeAlias = UndoTurns | BranchOff | SummaryReport  # `event_of` needs the transcript to make them events


Event: TypeAlias = (
    Submission
    | StartHeld
    | Rewrite
    | Begin
    | ModelReport
    | RetryReport
    | ToolReport
    | CallInside
    | EndInside
    | Answer
    | StopTurn
    | AnnounceStop
    | Recover
    | Suspend
    | Resume
    | EndSession
    | HandOver
    | NotePost
    | ResetSession
    | NoteBlocked
    | StartBackground
    | SetGoal
    | JudgeGoal
    | SetPreference
    | Undo
    | Compress
    | Summarised
    | SummaryFailed
    | Branch
)


# ---------------------------------------------------------------- work


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallWork:
    """Model call with the transcript. `last`: without tools."""

    turn: TurnId
    attempt: int
    replies: int
    last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallWork:
    turn: TurnId
    attempt: int
    call: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryWork:
    reason: str
    focus: str


Task: TypeAlias = ModelCallWork | ToolCallWork | SummaryWork


# ---------------------------------------------------------------- effects


@dataclass(frozen=True, slots=True, kw_only=True)
class Accept:
    """Tell the sender that the message is stored. `position`: number of turns before it."""

    turn: TurnId
    position: int
    handling: Handling
    into: TurnId | None = None  # the turn that it is the answer for
    opened: bool = False  # the opening was taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Send StartHeld after that time; a later Hold replaces an earlier one."""

    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    error: RefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Reroute:
    """The session takes no more messages; the conversation continues in another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    event: LiveEvent


Effect: TypeAlias = Accept | Hold | Refuse | Reroute | Publish


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessorSession:
    """A session that begins in the same transaction."""

    session: Session
    records: tuple[Record, ...]
    move_key: bool
    due: float | None = None  # as in Append


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Whole transaction that an event leads to, and the effects to perform once it is on disk."""

    session: Session  # after the records
    records: tuple[Record, ...] = ()
    effects: tuple[Effect, ...] = ()
    seen: Seen | None = None
    also: tuple[InboundKey, ...] = ()  # further inbound ids that are seen with it
    located: Sequence[Seen] = ()  # keys that lead to one of its turns from now on
    once: Sequence[Seen] = ()  # the same, and none of them may lead to a turn already
    bind: SessionKey | None = None  # from now on this key means this session
    child: SuccessorSession | None = None
    outbox: Sequence[OutboxMessage] = ()  # messages that are not final only name the place where a turn is shown
    usage: Sequence[Tally] = ()
    granted: tuple[str, ...] = ()  # rules that are allowed in every session from now on
    due: float | None = None  # as in Append
    children: tuple[ChildDuty, ...] = ()  # child sessions to start
