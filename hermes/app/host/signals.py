"""Signal handlers. They only schedule work on the event loop; nothing runs inside a handler.

SIGTERM and SIGINT request a stop. A second SIGINT forces the exit, a second SIGTERM changes nothing. SIGHUP reloads
the configuration, SIGUSR1 writes every actor, task and thread to the log.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hermes.actors.kernel.actor import live_actors
from hermes.config.log import log_dump
from hermes.supervision.shutdown import StopTrigger
from hermes.supervision.stop_switch import StopSwitch
from hermes.supervision.watchdog import print_to_terminal

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_HINT = "hermes: stopping; press Ctrl-C again to force the exit.\n"


@contextmanager
def handle_signals(stop: StopSwitch, reload: Callable[[], None]) -> Iterator[None]:
    """Handle signals. After it, a stop signal only cancels a restart: everything else has stopped."""

    def interrupt() -> None:
        stop.request("interrupted from the terminal", StopTrigger.INTERRUPT)
        print_to_terminal(_HINT)

    loop = asyncio.get_running_loop()
    handlers: dict[signal.Signals, Callable[[], None]] = {
        signal.SIGTERM: lambda: stop.request("asked to stop by SIGTERM", StopTrigger.SIGTERM),
        signal.SIGINT: interrupt,
        signal.SIGHUP: reload,
        signal.SIGUSR1: log_everything,
    }
    with _wakeup_socket(loop):
        # Not loop.add_signal_handler: the loop drops a pending signal when its handler is removed, and a signal that
        # arrives before the next handler is set would end the process.
        for number, handler in handlers.items():
            signal.signal(number, _scheduled(loop, handler))
            signal.siginterrupt(number, False)
        try:
            yield
        finally:
            for number in handlers:
                last = (lambda *_: stop.request_late()) if number in STOP_SIGNALS else signal.SIG_IGN
                signal.signal(number, last)


def _scheduled(loop: asyncio.AbstractEventLoop, handler: Callable[[], None]) -> Callable[..., object]:
    return lambda *_: loop.call_soon_threadsafe(handler)


@contextmanager
def _wakeup_socket(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Wake the loop on every signal, whichever thread receives it, so that Python calls the handler."""
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        loop.add_reader(reader, reader.recv, 4096)
        signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(-1)
            loop.remove_reader(reader)


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
