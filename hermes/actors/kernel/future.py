"""Future of an ask: awaited on an event loop, or waited for on a thread without one.

Rules: a future is settled once, from any thread. Any number of callers may wait on any loop or thread, and may stop
waiting. Waiting never blocks a loop. A future that cannot be settled any more is abandoned: no caller waits forever.
"""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
from asyncio import _get_running_loop as running_loop  # returns None where get_running_loop() raises
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from itertools import count
from types import TracebackType
from typing import Any, TypeAlias

import pykka

ExcInfo: TypeAlias = tuple[type[BaseException] | None, BaseException | None, TracebackType | None]
Outcome: TypeAlias = tuple[Any, BaseException | None, TracebackType | None]
Watcher: TypeAlias = Callable[["LoopFuture"], object]


class LoopFuture(pykka.Future[Any]):
    _get_hook: Callable[[float | None], Any] | None = None  # until `map`, `filter`, `join` or `reduce` sets one
    _outcome: Outcome | None = None
    _abandoned = False

    def __init__(self) -> None:
        # pykka's own __init__ is not called: every ask makes a future, and few get a hook.
        self._watchers: list[Watcher] = []
        self._tries = count()

    def done(self) -> bool:
        return self._outcome is not None

    # ------------------------------------------------------------ settling

    def set(self, value: Any | None = None) -> None:
        if not self.settle(value) and not self._abandoned:
            raise queue.Full

    def set_exception(self, exc_info: ExcInfo | None = None) -> None:
        kind, error, traceback = exc_info or sys.exc_info()
        if error is None:
            assert kind is not None, "set_exception() needs an exception"
            error = kind()
        if not self.settle(None, error, traceback) and not self._abandoned:
            raise queue.Full

    def abandon(self, error: BaseException) -> None:
        """Settle the future for an actor that has ended. A late answer is ignored."""
        if self.settle(None, error, error.__traceback__):
            self._abandoned = True

    def settle(self, value: Any, error: BaseException | None = None, traceback: TracebackType | None = None) -> bool:
        """Settle the future. Return False if it was settled before. The first call wins, without a lock."""
        if self._get_hook is not None or next(self._tries):
            return False
        self._outcome = (value, error, traceback)
        while self._watchers:
            try:
                watcher = self._watchers.pop(0)
            except IndexError:  # the last watcher was just removed
                break
            watcher(self)
        return True

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher` once, when the future is settled, on the thread that settles it."""
        self._watchers.append(watcher)
        if self._outcome is not None and self._unwatch(watcher):
            watcher(self)

    def _unwatch(self, watcher: Watcher) -> bool:
        """Remove a watcher. Return False if it was called or is about to be."""
        try:
            self._watchers.remove(watcher)
        except ValueError:
            return False
        return True

    # ------------------------------------------------------------ waiting

    def __await__(self) -> Generator[Any, None, Any]:
        if self._outcome is None and self._get_hook is None:
            waiter = asyncio.get_running_loop().create_future()
            watcher = partial(_wake, waiter)
            self.watch(watcher)
            try:
                yield from waiter
            except BaseException:
                self._unwatch(watcher)
                raise
        return self.get()

    __iter__ = __await__

    def get(self, *, timeout: float | None = None) -> Any:
        if self._get_hook is not None:
            return super().get(timeout=timeout)
        if self._outcome is None:
            self._block(timeout)
        assert self._outcome is not None
        value, error, traceback = self._outcome
        if error is not None:
            raise error.with_traceback(traceback)
        return value

    def _block(self, timeout: float | None) -> None:
        if running_loop() is not None:
            raise RuntimeError("this thread runs an event loop, which waiting would block: await the answer instead")
        settled = threading.Event()

        def watcher(_: LoopFuture) -> None:
            settled.set()

        self.watch(watcher)
        if not settled.wait(timeout) and self._unwatch(watcher):
            raise pykka.Timeout(f"{timeout} seconds")

    def set_get_hook(self, func: Callable[[float | None], Any]) -> None:
        if self._outcome is not None:
            raise queue.Full
        super().__init__()  # makes what a hook needs
        super().set_get_hook(func)


def _wake(waiter: asyncio.Future[None], _: LoopFuture) -> None:
    loop = waiter.get_loop()
    if running_loop() is loop:
        _release(waiter)
    else:
        with suppress(RuntimeError):  # that loop is closed
            loop.call_soon_threadsafe(_release, waiter)


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():  # else the waiting task was cancelled
        waiter.set_result(None)
