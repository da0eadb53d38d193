"""An event loop whose time is a number, and the journal's threads as events on it.

Nothing here waits: when nothing is ready, time jumps to the next timer. What another thread would do happens on the
loop after a delay that chance decides, and what that thread tells the loop arrives after another one, in the order in
which one thread said it. So every order that threads could bring about can come up, and the same seed brings up the
same one.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from contextvars import Context
from typing import Any, TypeVar

from hermes.actors.journal import Backlog, Flush, JournalWriter
from hermes.domain.errors import StorageError
from hermes.ports.storage import Engine

T = TypeVar("T")
Delay = Callable[[], float]

ROUND_S = 1e-5  # what one round of a busy loop takes: time passes for whoever waits by going round
RESOLUTION_S = 1e-9


class Killed(SystemExit):
    """Raised in a callback: the process ends here and now, as by `kill -9`."""


class VirtualLoop(asyncio.BaseEventLoop):
    def __init__(self, now: float, complain: Callable[[str], None]) -> None:
        super().__init__()
        self._now = now
        self._selector = self  # what the base waits with
        self.voice: Voice | None = None  # the thread that is being played right now
        self.set_exception_handler(lambda _, context: complain(_in_words(context)))

    def time(self) -> float:
        return self._now

    def run_until(self, when: float) -> None:
        """Do all there is to do up to then. Killed ends it at once, and `stop` after the round."""
        over = self.call_at(when, self.stop)
        try:
            self.run_forever()
        finally:
            over.cancel()

    def jump(self, now: float) -> None:
        """The process was stopped for a while."""
        self._now = max(self._now, now)

    def abandon(self) -> None:
        """Leave everything as it is, for ever. What coroutines do when they are closed counts for nobody."""
        self.set_exception_handler(lambda _, context: None)
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # some were not even begun
            for task in asyncio.all_tasks(self):
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is meant to be so
                coroutine: Any = task.get_coro()
                coroutine.close()
        self.close()

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        if self.voice is None:
            return self.call_soon(callback, *args, context=context)
        return self.call_at(self.voice.arrival(self._now), callback, *args, context=context)

    # ------------------------------------------------------------ what the base class asks for

    def select(self, timeout: float | None) -> Sequence[object]:
        assert timeout is not None, "nothing will ever happen again"
        self._now += timeout or ROUND_S
        return ()

    def _process_events(self, event_list: Sequence[object]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody has to be woken."""


def _in_words(context: dict[str, Any]) -> str:
    return f"{context.get('message')}: {context.get('exception')!r}"


class Voice:
    """What a thread tells the loop: it takes a while to arrive, and arrives in order."""

    def __init__(self, delay: Delay) -> None:
        self._delay = delay
        self._last = 0.0

    def arrival(self, now: float) -> float:
        self._last = max(now + self._delay(), self._last + RESOLUTION_S)
        return self._last


class VirtualWriter:
    """The journal's real writer without its thread. `moment` is told where it is, and may raise Killed."""

    def __init__(
        self,
        engine: Engine,
        backlog: Backlog,
        *,
        loop: VirtualLoop,
        delay: Delay,
        moment: Callable[[str], None],
        **answers: Any,
    ) -> None:
        self._engine = engine
        self._backlog = backlog
        self._loop = loop
        self._delay = delay
        self._moment = moment
        self._voice = Voice(delay)
        self._writer = JournalWriter(engine, backlog, **answers)

    def tell(self, message: Flush) -> None:
        self._loop.call_later(self._delay(), self._flush)

    def stop(self) -> None:
        self._flush()

    def die(self, *, kept: bool) -> None:
        """The process is gone. What was on its way to disk got there, or did not."""
        if kept and (batch := self._backlog.take()):
            with suppress(StorageError):
                self._engine.commit([transaction for transaction, _, _ in batch])

    def _flush(self) -> None:
        self._moment("before a commit")
        outer, self._loop.voice = self._loop.voice, self._voice
        try:
            self._writer.on_receive(Flush())
        finally:
            self._loop.voice = outer
        self._moment("after a commit")


class VirtualReaders(Executor):
    """A pool of threads that read: each call has its look after a while, and its answer arrives after another."""

    def __init__(self, *, loop: VirtualLoop, delay: Delay, during: Callable[[bool], None]) -> None:
        self._loop = loop
        self._delay = delay
        self._during = during  # told when a look begins and ends

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        self._loop.call_later(self._delay(), self._run, future, fn, args, kwargs)
        return future

    def _run(self, future: Future[T], fn: Callable[..., T], args: Any, kwargs: Any) -> None:
        outer, self._loop.voice = self._loop.voice, Voice(self._delay)
        self._during(True)
        try:
            value = fn(*args, **kwargs)
        finally:
            self._during(False)
            self._loop.voice = outer
        future.set_result(value)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing to let go of."""
