"""Decisions of the directory's sweep: which sessions to passivate, and whether the clock is steady. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from hermes.domain.directory.directory_settings import DirectorySettings
from hermes.domain.ids import SessionId

MAX_EVICTED = 1000  # sessions in one sweep
CLOCK_JUMP_S = 300.0
STEADY_FOR_S = 3600.0


def evictable(
    touched: Mapping[SessionId, float], now: float, settings: DirectorySettings, memory_bytes: int
) -> list[SessionId]:
    """Return the sessions to passivate: those idle for long enough, or more if memory is short.

    `touched`: the least recently used come first.
    """
    too_many = len(touched) - settings.max_live
    if settings.memory_limit_bytes and memory_bytes > settings.memory_limit_bytes:
        too_many = max(too_many, len(touched) // 4)
    return [
        session
        for place, (session, at) in enumerate(islice(touched.items(), MAX_EVICTED))
        if place < too_many or now - at >= settings.idle_after_s
    ]


class SteadyClock:
    """Detector of clock jumps. A wrong clock must not delete anything."""

    __slots__ = ("_last", "_since")

    def __init__(self, now: float) -> None:
        self._last = self._since = now

    def is_steady(self, now: float) -> bool:
        """Record the time. Return whether the clock has not jumped for a while."""
        if not 0 <= now - self._last < CLOCK_JUMP_S:
            self._since = now
        self._last = now
        return now - self._since >= STEADY_FOR_S
