"""State of a session, and questions that code asks about it. `state_fold.py` derives it from the records."""

from __future__ import annotations

from enum import StrEnum
from hashlib import blake2b

from hermes.domain.access.role import Role
from hermes.domain.cause.cause import CompressionCause, EndCause, InterruptionCause
from hermes.domain.cause.legacy_reason import legacy_interruption
from hermes.domain.child.child import Assignment, ChildLink
from hermes.domain.goal.goal import Goal
from hermes.domain.history.message_chain import NO_CHAIN, Chain
from hermes.domain.ids import Seq, SessionId, SessionKey, TurnId
from hermes.domain.source import ChatContext, Handover, Place
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.tool_call import Call, CallState, Effect
from hermes.domain.turn.turn_failure import Failure
from hermes.domain.turn.usage import Usage
from hermes.domain.values import dataclass


class Phase(StrEnum):
    IDLE = "idle"
    RUNNING = "running"
    WAITING = "waiting"
    RESUME_PENDING = "resume_pending"
    SUSPENDED = "suspended"
    ENDED = "ended"


OPEN_PHASES = (Phase.RUNNING, Phase.WAITING, Phase.RESUME_PENDING)  # a turn is open


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """Choices of a person for one conversation; empty means as configured."""

    title: str = ""
    model: str = ""
    personality: str = ""
    reasoning: str = ""
    busy: str = ""
    yolo: bool = False
    show_reasoning: bool = False  # in chats, with each answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An accepted message and its work. Its text is in the log."""

    id: TurnId
    accepted_at: float
    attempt: int = 0  # number of starts
    options: bytes = b"{}"  # model options of this turn, as a JSON object
    steer: bool = False  # merge into the running turn at its next step
    replies: int = 0  # number of the model's answers in this turn
    calls: tuple[Call, ...] = ()  # of its last answer, as far as they have no outcome
    usage: Usage = Usage()
    merged: tuple[TurnId, ...] = ()  # messages that became part of it, whose senders wait for its end
    place: Place | None = None  # where its answer is sent
    written: str = ""  # incomplete answer of the model when a stop interrupted it
    role: Role | None = None  # the lowest among those whose messages are in it; None: stored before there were roles
    by: str = ""  # platform and user of the person who began it
    name: str = ""  # of the same person
    several: bool = False  # it has messages of several people
    chain: Chain = NO_CHAIN  # of the client's history with its last message
    said: str = ""  # text of its earlier answers since that message; only where it has a chain
    results: tuple[str, ...] = ()  # calls whose results it brings
    handing: tuple[Call, ...] = ()  # calls that the client runs once the others have their outcome
    handing_message: EncodedMessage = EncodedMessage(b"")  # the model's message with those calls
    handing_model: str = ""
    automatic: bool = False  # no person wrote its message


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
    context_tokens: int = 0  # of the last model call and its answer
    compressing: str = ""  # not empty: why a summary is being made
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
    instructed: bytes = b""  # hash of the client's instructions
    handed: tuple[Call, ...] = ()  # calls of the last answer that the client runs
    handover: Handover | None = None  # the last one
    posted: tuple[str, ...] = ()  # texts for the model that were posted into the chat since the last turn began
    unreviewed_turns: int = 0  # of its person, finished since the last review
    unreviewed_calls: int = 0  # of tools, since a skill was used or the last review
    children: tuple[ChildLink, ...] = ()  # the last child sessions that it started
    assignment: Assignment | None = None  # of a child session
    delegated: Usage = Usage()  # spent by child sessions that worked for its tool calls
    goal: Goal | None = None  # that it pursues


def instructions_hash(message: EncodedMessage) -> bytes:
    """Return the hash of a client's instructions; empty for none."""
    return blake2b(message, digest_size=16).digest() if message else b""


def is_open(session: Session) -> bool:
    """Return whether the session takes messages."""
    return session.phase not in (Phase.SUSPENDED, Phase.ENDED)


def waits_for_children(turn: Turn | None) -> bool:
    """Return whether all that the turn does is to wait for child sessions. An interruption costs it nothing."""
    started = [call for call in turn.calls if call.state is CallState.STARTED] if turn is not None else []
    return bool(started) and all(call.effect is Effect.DURABLE for call in started)


def is_pending(session: Session) -> bool:
    """Return whether the session has open work that start-up must recover."""
    return session.phase in OPEN_PHASES or (
        session.phase == Phase.IDLE and bool(session.queue or session.compressing)
    )


def is_hidden(session: Session, seq: int, offset: int) -> bool:
    """Return whether the n-th message of a record was undone later."""
    return any(span[:2] <= (seq, offset) and seq < span[2] for span in session.hidden)


def root_of(session: Session) -> SessionId:
    return session.root or session.id


def announced_cause(session: Session) -> InterruptionCause:
    """Return the cause of the stop that was announced to the session."""
    return session.resume_cause or legacy_interruption(session.resume_reason)


def interruption_cause(session: Session) -> InterruptionCause:
    """Return why the turn of a session that does not run was interrupted."""
    known = session.interruption or legacy_interruption(session.reason)
    suspended = session.phase is Phase.SUSPENDED and not known
    return InterruptionCause.SUSPENDED if suspended else known
