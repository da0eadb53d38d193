"""What can be asked of the delivery actor, and what it tells itself."""

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
    """Told: these are on disk. One that is not final says where a turn that has begun is to be shown."""

    outgoing: Sequence[OutboxMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Asked: answered when all has been said that can be said now. Nothing new is shown after that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetSession:
    """Told: it was erased, and with it what it still had to say. What is being said right now is not tried again;
    an answer that is shown half gives way to a word about that."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """To itself: read the outbox once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptDone:
    chat: Chat
    name: str
    final: bool
    error: HermesError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressSaved:
    chat: Chat
    name: str
    dropped: bool
    error: HermesError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinueLane:
    chat: Chat
    rested: bool = False  # a pause is over


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowTyping:
    chat: Chat
    name: str
