"""Messages of the delivery actor: requests of others, and its own."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias

from hermes.actors.kernel.future import LoopFuture
from hermes.domain.errors import HermesError
from hermes.domain.ids import SessionId
from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.values import dataclass

Chat: TypeAlias = tuple[str, str]  # platform and chat


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliveries:
    """Send these outbox messages, which are on disk. One that is not final names the chat of a running turn."""

    outgoing: Sequence[OutboxMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Request before a stop. The reply comes when all that can be sent now is sent; then nothing new is shown."""


class DropOutcome(Enum):
    DROPPED = "dropped"
    ABSENT = "absent"  # no message with that id is held here; the store may have one for another platform
    BUSY = "busy"  # it is being sent, its turn still runs, or the outbox is not loaded yet


@dataclass(frozen=True, slots=True, kw_only=True)
class DropMessage:
    """Request to send a message no more: it becomes a dead letter. The reply is a `DropOutcome`."""

    name: str
    by: str  # who wants it


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetSession:
    """Drop the messages of an erased session. A send in progress is not retried.

    A half-shown reply is replaced by a note.
    """

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Message to itself: read the outbox again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptDone:
    chat: Chat
    name: str
    final: bool
    error: HermesError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    """Message to itself, while the failure is being stored."""

    chat: Chat
    name: str
    hopeless: bool  # the message becomes a dead letter


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedMessage:
    """Message to itself, while a dropped message is being stored as a dead letter."""

    chat: Chat
    name: str
    reply: LoopFuture


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinueLane:
    chat: Chat
    rested: bool = False  # a pause is over


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowTyping:
    chat: Chat
    name: str
