"""What the daemon asks of the operating system for its own process: more descriptors, and no onlookers."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from contextlib import suppress
from typing import Any, Final

from loguru import logger

_MAX_DESCRIPTORS: Final = 65_536  # where there is no limit, some give a billion; children inherit what is set
_KEPT: Final = 128  # descriptors for the store, logs, tools and calls to models
_QUIET_S: Final = 60.0
_PR_SET_DUMPABLE: Final = 4


def raise_descriptor_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # some systems have another limit below the one they tell
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connections_within(wanted: int) -> int:
    """So many connections, or as many as the descriptors that are left allow."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    allowed = max(1, soft - _open_descriptors() - _KEPT)
    if allowed < wanted:
        logger.warning(
            "api.max_connections is {} and this process may hold {} files open: at most {} connections are taken",
            wanted, soft, allowed,
        )  # fmt: skip
    return min(wanted, allowed)


def _open_descriptors() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only their number matters
    except OSError:  # not Linux
        return 32


def hide_from_children() -> None:
    """Keep the commands that tools run from reading our secrets.

    They run as the same user, and /proc/PID/environ shows the environment as it was at the start, whatever is removed
    from it later. A process that is not dumpable is closed to all but root: its environment, memory and descriptors.
    Its status and figures stay readable. A program that is started by it is dumpable again. Linux only.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # noqa: PLC0415 - for the daemon only

    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0):
        logger.warning("commands can read this process's environment: {}", os.strerror(ctypes.get_errno()))


class LoopErrorLog:
    """What the event loop has to report. A flood of connections that cannot be accepted is one line a minute."""

    def __init__(self) -> None:
        self._quiet_until = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not str(context.get("message", "")).startswith("socket.accept()"):
            loop.default_exception_handler(context)
        elif loop.time() >= self._quiet_until:
            self._quiet_until = loop.time() + _QUIET_S
            logger.error("connections cannot be accepted at the moment: {}", context.get("exception"))
