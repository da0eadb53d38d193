"""Timers of one actor, which are cancelled at its end."""

from __future__ import annotations

from asyncio import TimerHandle

_FEW = 8


class Timers:
    __slots__ = ("_handles", "_sweep_at")

    def __init__(self) -> None:
        self._handles: list[TimerHandle] = []
        self._sweep_at = _FEW

    def add(self, handle: TimerHandle, now: float) -> None:
        """Add a timer. Expired and cancelled ones are removed when the number has doubled, so adding stays cheap."""
        if len(self._handles) >= self._sweep_at:
            self._handles = [kept for kept in self._handles if not kept.cancelled() and kept.when() > now]
            self._sweep_at = max(_FEW, 2 * len(self._handles))
        self._handles.append(handle)

    def cancel(self) -> None:
        for handle in self._handles:
            handle.cancel()
        self._handles.clear()
