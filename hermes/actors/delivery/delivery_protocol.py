"""Messages of the delivery actor: requests of others, and its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

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
class ContinueLane:
    chat: Chat
    rested: bool = False  # a pause is over


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowTyping:
    chat: Chat
    name: str
