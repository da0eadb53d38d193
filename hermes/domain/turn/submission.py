"""Message on its way into a session, and the receipt for it."""

from __future__ import annotations

from enum import StrEnum

from hermes.domain.child.child import Assignment
from hermes.domain.history.message_chain import NO_CHAIN, Chain
from hermes.domain.ids import InboundKey, SessionId, SessionKey, TurnId
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.values import dataclass


class Busy(StrEnum):
    """Effect of a message that comes while a turn runs."""

    QUEUE = "queue"
    STEER = "steer"
    INTERRUPT = "interrupt"


class Handling(StrEnum):
    """Effect of an accepted message."""

    STARTED = "started"
    QUEUED = "queued"
    STEERING = "steering"
    INTERRUPTING = "interrupting"
    JOINED = "joined"  # it is the rest of a queued message
    ANSWER = "answer"  # it answers a waiting call
    DELIVERING = "delivering"  # a dead letter is sent again


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """Message of a person on its way in. `session` or `key` names the conversation; neither: a new one."""

    turn: TurnId
    messages: tuple[EncodedMessage, ...]  # earlier history first, if the sender brings it; the new one last
    source: Source
    session: SessionId | None = None
    key: SessionKey | None = None
    options: bytes = b"{}"
    inbound: InboundKey | None = None  # the source's own id of it, for exactly-once
    also: tuple[InboundKey, ...] = ()  # of further parts of it; none of them was accepted before
    fingerprint: bytes = b""
    busy: str = ""  # what it does to a turn in flight: queue, steer or interrupt; empty: as configured
    joins: TurnId | None = None  # it is the rest of that message, which a client split; if that still waits
    more_s: float = 0.0  # how long its turn is held for the rest of it
    said: str = ""  # words of the person alone, if the message has more; only they can answer a question
    opening: tuple[EncodedMessage, ...] = ()  # earlier history, taken if this is the session's first message
    may_answer: bool = True  # False: it brings a forwarded message, which answers no question
    instructions: EncodedMessage | None = None  # of the client, from now on; empty: none; None: as before
    chain: Chain = NO_CHAIN  # of the client's history with the new message
    locates: tuple[InboundKey, ...] = ()  # keys that lead to this turn from now on
    once: bool = False  # refused with AlreadySeenError if one of `locates` leads to a turn already
    replies: bool = False  # it follows the open question in its client's history: other words than an answer deny
    results: tuple[str, ...] = ()  # calls whose results are the first of `messages`; the client ran them
    retries: bool = False  # the last turn failed and is tried again, without a new message
    assignment: Assignment | None = None  # it starts a child session, which must not exist


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The message is durable. A duplicate's receipt names the turn that was accepted the first time."""

    session: SessionId
    turn: TurnId
    position: int = 0  # how many turns go first
    duplicate: bool = False
    notice: str = ""  # for the person, for example why this is a new session
    handling: Handling = Handling.STARTED
    into: TurnId | None = None  # the turn that it is the answer for
    opened: bool = False  # the opening was taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An accepted inbound id: the same id again is the same turn, also after a crash."""

    key: InboundKey
    session: SessionId
    turn: TurnId
    fingerprint: bytes  # of the request's content; another content under the same id is a client's mistake
    at: float
