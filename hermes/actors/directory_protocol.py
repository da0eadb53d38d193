"""What can be asked of the session directory, besides taking mail for a session."""

from __future__ import annotations

from dataclasses import dataclass

from hermes.types import SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectorySettings:
    idle_after_s: float
    max_live: int
    max_queue: int
    memory_limit_bytes: int  # 0: none
    seen_for_s: float


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
    """Asked: how much mail waits for the session; None if it is not in memory."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Configure:
    settings: DirectorySettings
