"""Dispatcher: runs the actors of one event loop that have mail.

All actors share one callback on the loop, which ends after a few milliseconds. So sockets, timers and tasks run
however many actors are busy, and a burst of mail to thousands of actors costs one wake-up.

Actor state is used on its loop's thread only, without locks. Mail from other threads is queued here.
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
        self.slice_s = SLICE_S  # a simulation ignores real time: one message per slice
        self.lock = threading.RLock()  # reentrant: a finalizer may send a message while the lock is held
        self._due: deque[Drain] = deque()
        self._left: deque[Callable[[], None]] = deque()
        self._scheduled = False

    @classmethod
    def here(cls) -> Dispatcher:
        """Return the dispatcher of this thread's running loop. Raises RuntimeError if there is none."""
        loop = asyncio.get_running_loop()
        dispatcher: Dispatcher | None = getattr(_here, "dispatcher", None)
        if dispatcher is None or dispatcher.loop is not loop:
            dispatcher = _here.dispatcher = cls(loop)
        return dispatcher

    def add(self, drain: Drain) -> None:
        """Schedule a drain after those that are already due. Call on the loop."""
        self._due.append(drain)
        if not self._scheduled:
            self._schedule()

    def leave(self, deliver: Callable[[], None]) -> None:
        """Queue a call for the loop. Call from another thread with the lock held.

        Raises RuntimeError if the loop is closed.
        """
        self._left.append(deliver)
        if not self._scheduled:
            self._scheduled = True  # before the call: the loop may run it before the call returns
            try:
                self.loop.call_soon_threadsafe(self._run, context=Context())
            except RuntimeError:
                self._scheduled = False
                self._left.pop()
                raise

    def collect(self) -> None:
        """Deliver the calls that other threads have queued."""
        while self._left:
            self._left.popleft()()

    def _schedule(self) -> None:
        # In its own context: a handler must not see the context variables of the first sender.
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
            self._scheduled = False  # before the check: later mail is either seen or schedules itself
            if due or self._left:
                self._schedule()
