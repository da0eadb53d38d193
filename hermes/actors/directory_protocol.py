"""What can be asked of the session directory besides taking mail for a session, and what it tells itself."""

from __future__ import annotations

from enum import StrEnum

from hermes.actors.roster import Look
from hermes.actors.routing import Address, Route
from hermes.actors.session_protocol import Limits
from hermes.errors import HermesError
from hermes.types import Session, SessionId
from hermes.values import dataclass


class Held(StrEnum):
    """Why a turn that was cut off waits for the person's next message."""

    NOT = ""  # it goes on by itself
    CONFIGURED = "resume.when"
    CRASHES = "the daemon keeps crashing"


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectorySettings:
    idle_after_s: float
    max_live: int
    limits: Limits
    memory_limit_bytes: int  # 0: none
    seen_for_s: float
    take_up: bool = True  # sessions with open work are brought back without waiting for somebody to write
    hold: Held = Held.NOT  # why their turns that were cut off wait for the person's next message, if they do
    resume_per_s: float = 1000.0  # how many are brought back in a second


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnounceStopToAll:
    """Asked before a stop; answered when every session with work in flight has it marked on disk."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Asked: have this session leave memory, whatever it does; answered when it is gone."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Peek:
    """Asked: what the directory knows of the session, answered by a Glimpse."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Glimpse:
    mailbox: int | None  # how much mail waits for it; None: it is not in memory
    parked: str  # why, if it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Configure:
    settings: DirectorySettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """To itself: the store has said which session an address means."""

    address: Address
    look: Look
    route: Route
    error: HermesError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPending:
    """To itself: these have open work and nobody who does it."""

    look: Look
    heads: tuple[Session, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BringBack:
    """To itself: the pause after a crash is over."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """To itself, now and then: see who may leave memory."""
