"""What can be asked of the session directory besides taking mail for a session, and what it tells itself."""

from __future__ import annotations

from hermes.actors.registry import ReadSnapshot
from hermes.domain.directory.settings import DirectorySettings
from hermes.domain.errors import HermesError
from hermes.domain.ids import SessionId
from hermes.domain.read.lineage import Address, Route
from hermes.domain.session.protocol import AnnounceStop
from hermes.domain.session.state import Session
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnounceStopToAll:
    """Request before a stop. The reply comes when every session with work in flight has stored its mark."""

    stop: AnnounceStop


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Asked: have this session leave memory, whatever it does; answered when it is gone."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Peek:
    """Asked: what the directory knows of the session, answered by a Glimpse."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionGlance:
    mailbox: int | None  # how much mail waits for it; None: it is not in memory
    parked: str  # why, if it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Configure:
    settings: DirectorySettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """To itself: the store has said which session an address means."""

    address: Address
    look: ReadSnapshot
    route: Route
    error: HermesError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPending:
    """To itself: these have open work and nobody who does it."""

    look: ReadSnapshot
    heads: tuple[Session, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BringBack:
    """To itself: the pause after a crash is over."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """To itself, now and then: see who may leave memory."""
