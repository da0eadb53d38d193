"""Messages of the session directory, except mail for sessions: requests of others, and its own."""

from __future__ import annotations

from hermes.actors.session.session_registry import ReadSnapshot
from hermes.domain.directory.directory_settings import DirectorySettings
from hermes.domain.errors import HermesError
from hermes.domain.ids import SessionId
from hermes.domain.read.lineage import Address, Route
from hermes.domain.session.builder import open_turns
from hermes.domain.session.protocol import AnnounceStop
from hermes.domain.session.state import Session, is_pending
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnounceStopToAll:
    """Request before a stop. The reply comes when every session with work in flight has stored its mark."""

    stop: AnnounceStop


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Remove a session from memory, even if it is busy. The reply comes when it has ended."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Peek:
    """Request for the directory's view of a session. The reply is a SessionGlance."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionGlance:
    mailbox: int | None  # number of waiting messages; None: not in memory
    parked: str  # the reason; empty: not parked


@dataclass(frozen=True, slots=True, kw_only=True)
class Configure:
    settings: DirectorySettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """Message to itself: the session of an address was read from the store."""

    address: Address
    look: ReadSnapshot
    route: Route
    error: HermesError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPending:
    """Message to itself: these sessions have open work and are not in memory."""

    look: ReadSnapshot
    heads: tuple[Session, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BringBack:
    """Message to itself: the pause after a crash is over."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Message to itself, at intervals: passivate idle sessions."""


def found_pending(look: ReadSnapshot, routes: list[Route]) -> FoundPending:
    """Return the sessions with open work, the longest waiting first."""
    heads = [route.head for route in routes if route.head is not None and is_pending(route.head)]
    return FoundPending(look=look, heads=tuple(sorted(heads, key=_waits_since)))


def _waits_since(head: Session) -> float:
    return min((turn.accepted_at for turn in open_turns(head)), default=head.since)
