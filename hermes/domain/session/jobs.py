"""Jobs that a session gives to the agent, and the reports that come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from hermes.domain.access.role import Role
from hermes.domain.child.child import Assignment, Purpose
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.memory.scope import MemoryScope
from hermes.domain.session.state import Preferences
from hermes.domain.source import ChatContext
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.tool_call import Call, CallOutcome
from hermes.domain.turn.turn_failure import Failure
from hermes.domain.turn.usage import Usage
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelJob:
    """Model call with a transcript."""

    session: SessionId
    root: SessionId  # whose folder the conversation works in
    media_scope: str = ""  # of the files that people sent to the conversation; empty: it is in no chat
    turn: TurnId
    attempt: int
    replies: int
    messages: Sequence[EncodedMessage]
    size_bytes: int = 0  # of the messages; 0: not known
    options: bytes
    pictured: bool = True  # False: no message refers to the media store
    prompt: EncodedMessage | None = None  # None: it is to be built
    platform: str = ""
    preferences: Preferences = Preferences()
    grants: tuple[str, ...] = ()
    granted: frozenset[str] = frozenset()  # rules that need no approval in this turn
    spent: Usage = Usage()  # by the session so far
    last: bool = False  # no more tools in this turn
    company: ChatContext | None = None  # chat and person
    role: Role = Role.OWNER  # of the person whose turn this is
    by: str = ""  # the same person: platform and user
    instructions: EncodedMessage = EncodedMessage(b"")  # of the client
    chat: str = ""  # PLATFORM:CHAT; empty: it is in no chat
    assignment: Assignment | None = None  # of a child session
    scope: MemoryScope | None = None  # whose memory this turn uses; None: no one's


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReport:
    """Result of a job; exactly one for each job that was not cancelled."""

    turn: TurnId
    attempt: int
    replies: int
    failure: Failure | None = None  # set: the call failed
    message: EncodedMessage = EncodedMessage(b"")
    text: str = ""
    model: str = ""
    finish_reason: str = ""
    usage: Usage = Usage()
    calls: tuple[Call, ...] = ()
    prompt: EncodedMessage | None = None
    context_tokens: int = 0
    context_full: bool = False
    waited_s: float = 0.0  # for other calls to the same model
    handed: tuple[Call, ...] = ()  # calls that the client runs
    handed_message: EncodedMessage = EncodedMessage(b"")  # the model's message with them, apart from the other calls


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryReport:
    """A model call failed and is made again. The job goes on, and its own report follows."""

    turn: TurnId
    attempt: int
    replies: int
    model: str
    failure: Failure
    tries: int  # of that model, this one included
    delay_s: float  # until the next one


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolJob:
    session: SessionId
    root: SessionId
    media_scope: str = ""  # as in ModelJob
    turn: TurnId
    attempt: int
    call: str
    name: str
    arguments: str  # JSON, as the model wrote it
    platform: str = ""
    permitted: frozenset[str] = frozenset()  # rules that a person has allowed, for this call or for longer
    unasked: bool = False  # the person wants no questions at all
    role: Role = Role.OWNER  # of the person whose turn this is
    by: str = ""  # the same person: platform and user; empty: messages of several people are in the turn
    only: tuple[str, ...] | None = None  # names of the only tools that may run; None: all that the person has
    replies: int = 0  # of the model in this turn; providers may number the calls of each reply from 0
    purpose: Purpose | None = None  # of a child session
    scope: MemoryScope | None = None  # as in ModelJob
    children: tuple[SessionId, ...] = ()  # child sessions that were started with the call
    context: str = ""  # what hooks told before the call, for the model


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReport:
    turn: TurnId
    attempt: int
    call: str
    message: EncodedMessage
    outcome: CallOutcome
    took_s: float
    spent: Usage = Usage()  # by child sessions that worked for the call


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryJob:
    """Summary of a transcript, from which the conversation continues."""

    session: SessionId
    root: SessionId
    messages: Sequence[EncodedMessage]
    focus: str = ""
    preferences: Preferences = Preferences()
    turn: TurnId | None = None  # in flight, and waiting for it


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryReport:
    messages: tuple[EncodedMessage, ...] = ()
    problem: str = ""  # not empty: why it failed
    usage: Usage = Usage()
    model: str = ""


Report: TypeAlias = ModelReport | RetryReport | ToolReport | SummaryReport
