"""Outbox messages, delivered messages and dead letters."""

from __future__ import annotations

from enum import StrEnum

from hermes.domain.ids import SessionId, TurnId
from hermes.domain.source import Place, Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.values import dataclass


class OutboxKind(StrEnum):
    """Kind of an outbox message."""

    REPLY = "reply"
    QUESTION = "question"
    NOTICE = "notice"
    SIGN = "sign"  # a message was received and waits: shown at most once, and never stored


class TurnEnd(StrEnum):
    """End of a turn."""

    ANSWERED = "answered"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxMessage:
    """Message to a chat platform, until the platform has confirmed it.

    A streamed reply and its final text are one outbox message. Without text and files
    nothing is sent, unless a part of it is shown already. The last fields belong to the delivery.
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
    sending: bool = False  # one more was sent; it is unknown whether it arrived
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
    at: float  # when it was enqueued
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
