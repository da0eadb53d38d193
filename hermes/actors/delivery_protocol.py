"""What can be asked of the delivery actor, and what it tells itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from hermes.errors import HermesError
from hermes.types import Obligation, SessionId
from hermes.values import dataclass

Chat: TypeAlias = tuple[str, str]  # platform and chat


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """Told: these are on disk. One that is not final says where a turn that has begun is to be shown."""

    owed: Sequence[Obligation]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle:
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
class Loaded:
    owed: Sequence[Obligation]
    error: HermesError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    chat: Chat
    name: str
    final: bool
    error: HermesError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    chat: Chat
    name: str
    dropped: bool
    error: HermesError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GoOn:
    chat: Chat
    rested: bool = False  # a pause is over


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowTyping:
    chat: Chat
    name: str
