"""What signals do. The handlers only pass the word on; nothing is done inside a signal handler.

SIGTERM and SIGINT ask for a stop; more SIGTERMs change nothing, a second SIGINT leaves at once. SIGHUP reloads the
configuration, SIGUSR1 writes every actor, task and thread to the log.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from hermes.actors.kernel.actor import live_actors
from hermes.config.log import log_dump

EXIT_INTERRUPTED = 130
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_ONCE_MORE = "hermes: stopping; Ctrl-C once more leaves at once.\n"
_LEFT = (
    "hermes: left at once, by a second Ctrl-C. What was acknowledged is on disk, and what was cut off goes on at the "
    "next start.\n"
)


@contextmanager
def handle_signals(
    request_stop: Callable[[str], None], reload: Callable[[], None], leaving: Callable[[], None]
) -> Iterator[None]:
    """`leaving` is called, in the handler itself, when a stop is asked for in the last steps of the process."""
    interrupts = 0

    def interrupted() -> None:
        nonlocal interrupts
        interrupts += 1
        if interrupts > 1:
            _tell(_LEFT)
            os._exit(EXIT_INTERRUPTED)
        request_stop("interrupted from the terminal")
        _tell(_ONCE_MORE)

    loop = asyncio.get_running_loop()
    handlers: dict[signal.Signals, Callable[[], None]] = {
        signal.SIGTERM: lambda: request_stop("asked to stop by SIGTERM"),
        signal.SIGINT: interrupted,
        signal.SIGHUP: reload,
        signal.SIGUSR1: log_everything,
    }
    with _waking(loop):
        # Not the loop's own handlers: it forgets a signal that it has not seen when they are taken away, and the
        # process would die of one that comes before there are others.
        for number, handler in handlers.items():
            signal.signal(number, _passed_on(loop, handler))
            signal.siginterrupt(number, False)
        try:
            yield
        finally:
            for number in handlers:
                last = (lambda *_: leaving()) if number in STOP_SIGNALS else signal.SIG_IGN
                signal.signal(number, last)  # for the last steps of the process: it is leaving already


def _passed_on(loop: asyncio.AbstractEventLoop, handler: Callable[[], None]) -> Callable[..., object]:
    return lambda *_: loop.call_soon_threadsafe(handler)


@contextmanager
def _waking(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Whichever thread a signal meets, the loop wakes, and Python calls its handler."""
    ears, mouth = socket.socketpair()
    with ears, mouth:
        ears.setblocking(False)
        mouth.setblocking(False)
        loop.add_reader(ears, ears.recv, 4096)
        signal.set_wakeup_fd(mouth.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(-1)
            loop.remove_reader(ears)


def _tell(line: str) -> None:
    """To whoever pressed the keys, unless their terminal is held: nobody waits for that."""
    with suppress(OSError, ValueError):
        if select.select([], [2], [], 0)[1]:
            os.write(2, line.encode())


def log_everything() -> None:
    """Every actor with its mailbox, every task and thread with its stack."""
    lines = ["actors:"]
    for actor in live_actors():
        view = actor.statistics()
        lines.append(
            f"  {view.kind} {view.name}: {view.state}, {view.mailbox} waiting (oldest {view.oldest_s:.1f} s), "
            f"{view.handled} handled, slowest {view.slowest_s * 1000:.0f} ms {view.last_error}"
        )
    lines.append("tasks:")
    for task in asyncio.all_tasks():
        frames = task.get_stack(limit=4)
        where = " < ".join(f"{frame.f_code.co_name}:{frame.f_lineno}" for frame in reversed(frames))
        lines.append(f"  {task.get_name()}: {where}")
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():  # noqa: SLF001 - the documented way to see other threads
        lines.append(f"thread {names.get(ident, ident)}:")
        lines.extend(line.rstrip() for line in traceback.format_stack(frame, limit=8))
    log_dump("\n".join(lines), "a list of all actors, tasks and threads")
