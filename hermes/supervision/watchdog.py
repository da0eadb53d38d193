"""Forced exits: a shutdown that hangs, threads that do not end, a second Ctrl-C.

They lose nothing: what was acknowledged is on disk, and the next start resumes it.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, NoReturn

from loguru import logger

EXIT_TRY_AGAIN: Final = 75
EXIT_INTERRUPTED: Final = 130
_LINGER_S: Final = 1.0  # for threads that are left when everything is closed
_LOG_S: Final = 0.2
_INTERRUPTED: Final = (
    "hermes: forced exit by a second Ctrl-C. Acknowledged messages are on disk; interrupted turns resume at the next "
    "start.\n"
)


class ShutdownWatchdog:
    """Ends the process when a shutdown takes too long. Runs in a thread: the event loop may be what hangs."""

    def __init__(self, timeout_s: Callable[[], float]) -> None:
        self._timeout_s = timeout_s  # read when it is armed
        self._timer: threading.Timer | None = None

    def arm(self) -> None:
        """Start the full time, again if it is running."""
        timeout_s = self._timeout_s()
        self._start(timeout_s, partial(_force_exit, timeout_s))

    def disarm(self, exit_process: Callable[[], None]) -> None:
        """Everything is closed: call `exit_process` if a thread keeps the process alive."""
        self._start(_LINGER_S, exit_process)

    def _start(self, seconds: float, call: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(seconds, call)
        self._timer.daemon = True
        self._timer.start()


def _force_exit(timeout_s: float) -> None:
    log = threading.Thread(
        target=logger.error, args=("shutdown timed out after {} s; forcing exit", timeout_s), daemon=True
    )
    log.start()
    log.join(_LOG_S)  # the log may be what hangs
    os._exit(EXIT_TRY_AGAIN)


def exit_interrupted() -> NoReturn:
    print_to_terminal(_INTERRUPTED)
    os._exit(EXIT_INTERRUPTED)


def print_to_terminal(line: str) -> None:
    """Write a line to stderr, unless that would block: a terminal can be held."""
    with suppress(OSError, ValueError):
        if select.select([], [2], [], 0)[1]:
            os.write(2, line.encode())
