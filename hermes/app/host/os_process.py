"""Operating system settings of the daemon's own process: file descriptors, and secrecy of its environment."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from loguru import logger

_MAX_DESCRIPTORS: Final = 65_536  # where there is no limit, some systems report a billion; children inherit it
_KEPT: Final = 128  # descriptors for the store, logs, tools and calls to models
_QUIET_S: Final = 60.0
_PR_SET_DUMPABLE: Final = 4
_M_ARENA_MAX: Final = -8  # of malloc.h


def raise_descriptor_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # some systems have a lower limit than they report
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connections_within(wanted: int) -> int:
    """Return the wanted number of connections, or what the free file descriptors allow."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    allowed = max(1, soft - _open_descriptors() - _KEPT)
    if allowed < wanted:
        logger.warning(
            "api.max_connections is {}, but this process can open {} files: limiting to {} connections",
            wanted, soft, allowed,
        )  # fmt: skip
    return min(wanted, allowed)


def _open_descriptors() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only their number matters
    except OSError:  # not Linux
        return 32


def hide_from_children() -> None:
    """Make this process not dumpable, so that commands of tools cannot read its secrets. Linux only.

    They run as the same user, and /proc/PID/environ shows the environment as it was at the start, also what was
    removed later. Only root can read the environment, memory and descriptors of a process that is not dumpable.
    Its status stays readable. A program that it starts is dumpable again.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # noqa: PLC0415 - for the daemon only

    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0):
        logger.warning("commands can read this process's environment: {}", os.strerror(ctypes.get_errno()))


def use_one_heap() -> None:
    """Make all threads allocate from one heap, where the C library is glibc. It saves 1 MB.

    By default each thread gets a heap of its own, and memory that is free in one is of no use in another. With the
    global interpreter lock, threads hardly ever allocate at the same time.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # noqa: PLC0415 - for the daemon only

    with suppress(AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def return_free_memory() -> None:
    """Return memory to the system that the start no longer needs, where the C library is glibc. It saves 0.4 MB."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # noqa: PLC0415 - for the daemon only

    with suppress(AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


class LoopErrorLog:
    """Exception handler of the event loop. Logs connections that cannot be accepted at most once a minute."""

    def __init__(self) -> None:
        self._quiet_until = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not str(context.get("message", "")).startswith("socket.accept()"):
            loop.default_exception_handler(context)
        elif loop.time() >= self._quiet_until:
            self._quiet_until = loop.time() + _QUIET_S
            logger.error("cannot accept connections: {}", context.get("exception"))


def own_cgroups() -> str:
    """Return the control groups of this process as the kernel lists them; empty without control groups."""
    try:
        return Path("/proc/self/cgroup").read_text("utf-8", "replace")
    except OSError:
        return ""
