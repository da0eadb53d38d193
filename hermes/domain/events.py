"""Live events that adapters and operators can watch.

Live events are not the truth, the journal is: a slow reader may miss some, a restart forgets them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from hermes.domain.cause.cause import EndCause
from hermes.domain.values import dataclass

if TYPE_CHECKING:
    from hermes.domain.child.child import ChildEnd, Purpose
    from hermes.domain.ids import SessionId, TurnId
    from hermes.domain.session.state import Phase
    from hermes.domain.turn.tool_call import CallOutcome, ClientCall
    from hermes.domain.turn.turn_failure import Failure
    from hermes.domain.turn.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAccepted:
    """The message is on disk. `position` is how many turns go first."""

    session: SessionId
    turn: TurnId
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnBegan:
    session: SessionId
    turn: TurnId
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    session: SessionId
    turn: TurnId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    """Reasoning of the model, which is not part of its answer."""

    session: SessionId
    turn: TurnId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReset:
    """The answer was cut off and is asked for again: the text since the last tool call is void."""

    session: SessionId
    turn: TurnId


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBegan:
    session: SessionId
    turn: TurnId
    call: str
    name: str
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallProgress:
    session: SessionId
    turn: TurnId
    call: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    session: SessionId
    turn: TurnId
    call: str
    name: str
    outcome: CallOutcome
    took_s: float
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAsked:
    """The turn waits for a person: for an approval, or for the answer to a question."""

    session: SessionId
    turn: TurnId
    call: str
    name: str
    question: str
    choices: tuple[str, ...]
    approval: bool
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswered:
    session: SessionId
    turn: TurnId
    call: str
    name: str
    answer: str
    by: str
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steered:
    """A message was merged into the running turn."""

    session: SessionId
    turn: TurnId
    message: TurnId


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMoved:
    """The conversation goes on in another session, and an open turn with it."""

    session: SessionId
    successor: SessionId
    reason: str
    turn: TurnId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something the person should know."""

    session: SessionId
    text: str
    turn: TurnId | None = None
    of_model: bool = False  # the text can quote the model endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAnswered:
    """The answer is on disk."""

    session: SessionId
    turn: TurnId
    text: str
    model: str
    finish_reason: str
    usage: Usage
    calls: tuple[ClientCall, ...] = ()  # that the client runs
    reasoning: str = ""  # of the model call that answered


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnGaveUp:
    """The turn ended without an answer, and the journal has the reason."""

    session: SessionId
    turn: TurnId
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpened:
    """A new session is on disk."""

    session: SessionId
    platform: str
    reason: str
    purpose: str = ""  # of a child session


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseChanged:
    session: SessionId
    phase: Phase
    reason: str
    cause: EndCause = EndCause.UNKNOWN  # of its end


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStarted:
    """In the background of that session."""

    session: SessionId
    process: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnded:
    session: SessionId
    process: str
    command: str
    end: str  # in a few words


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnded:
    """A child session has ended, and its end has been reported."""

    session: SessionId | None  # its parent; None: the daemon
    child: SessionId
    purpose: Purpose
    end: ChildEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorFailed:
    name: str
    problem: str
    verdict: str  # what supervision does about it


Event: TypeAlias = (
    TurnAccepted
    | TurnBegan
    | TextDelta
    | ReasoningDelta
    | TextReset
    | CallBegan
    | CallProgress
    | CallEnded
    | CallAsked
    | CallAnswered
    | Steered
    | TurnAnswered
    | TurnGaveUp
    | SessionMoved
    | Notice
    | SessionOpened
    | PhaseChanged
    | ProcessStarted
    | ProcessEnded
    | ChildEnded
    | ActorFailed
)
CallEvent: TypeAlias = CallBegan | CallEnded | CallAsked | CallAnswered
TurnOutcome: TypeAlias = TurnAnswered | TurnGaveUp
