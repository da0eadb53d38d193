"""Whose turn it is: the actors of one event loop that have mail.

All of them share one callback on the loop, and that callback ends after a few milliseconds: sockets, timers and
tasks get their turn however many actors are busy, and a burst to thousands of them costs one wake-up.

What belongs to an actor is touched on its loop's thread only, without locks. Mail from other threads is left here.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context
from time import monotonic
from typing import TypeAlias

SLICE_S = 0.005

# Handles a bounded batch. Takes the time and the end of the slice; returns the time when it is done.
Drain: TypeAlias = Callable[[float, float], float]

_here = threading.local()


class Dispatcher:
    __slots__ = ("_due", "_left", "_scheduled", "lock", "loop", "slice_s")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.slice_s = SLICE_S  # a simulation, where real time must not count, has one message in each
        self.lock = threading.RLock()  # reentrant, so that a finalizer that tells cannot lock itself out
        self._due: deque[Drain] = deque()
        self._left: deque[Callable[[], None]] = deque()
        self._scheduled = False

    @classmethod
    def here(cls) -> Dispatcher:
        """That of the loop this thread runs. RuntimeError: it runs none."""
        loop = asyncio.get_running_loop()
        dispatcher: Dispatcher | None = getattr(_here, "dispatcher", None)
        if dispatcher is None or dispatcher.loop is not loop:
            dispatcher = _here.dispatcher = cls(loop)
        return dispatcher

    def add(self, drain: Drain) -> None:
        """On the loop: have it called after those that are due already."""
        self._due.append(drain)
        if not self._scheduled:
            self._schedule()

    def leave(self, deliver: Callable[[], None]) -> None:
        """From another thread, holding the lock: have it called on the loop. RuntimeError: the loop is closed."""
        self._left.append(deliver)
        if not self._scheduled:
            self._scheduled = True  # before the call: the loop may be done with it before the call returns
            try:
                self.loop.call_soon_threadsafe(self._run, context=Context())
            except RuntimeError:
                self._scheduled = False
                self._left.pop()
                raise

    def collect(self) -> None:
        """Deliver what other threads have left."""
        while self._left:
            self._left.popleft()()

    def _schedule(self) -> None:
        # In a context of its own: a handler must not see the variables of whoever happened to tell first.
        self.loop.call_soon(self._run, context=Context())
        self._scheduled = True

    def _run(self) -> None:
        due = self._due
        now = monotonic()
        until = now + self.slice_s
        try:
            self.collect()
            while due and now < until:
                now = due.popleft()(now, until)
        finally:
            self._scheduled = False  # before the look, so that what is left meanwhile is seen or schedules itself
            if due or self._left:
                self._schedule()
