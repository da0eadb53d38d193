"""Reaper of orphaned tool processes.

The daemon is a subreaper (Linux): a process whose parent has ended stays in the daemon's tree, so that the admin
socket can see that a tool started it. A child that the daemon started is reaped by the code that waits for it; an
orphan looks the same. A dead child is certainly an orphan if it does not lead its session and that session is not the
daemon's: every process that the daemon starts leads a session. Any other dead child is reaped after a time that is
much longer than the daemon's own waits.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from loguru import logger

from hermes.domain.values import dataclass

_PR_SET_CHILD_SUBREAPER: Final = 36
_UNCLAIMED_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadChild:
    pid: int
    session: int


@asynccontextmanager
async def keeping_orphans() -> AsyncIterator[None]:
    """Adopt orphans and reap them. For the main thread, which handles signals."""
    if not become_subreaper():
        yield
        return
    reaper, loop = OrphanReaper(time.monotonic), asyncio.get_running_loop()
    task = asyncio.create_task(reaper.run(), name="orphans")
    signal.signal(signal.SIGCHLD, lambda *_: loop.call_soon_threadsafe(reaper.child_ended))
    signal.siginterrupt(signal.SIGCHLD, False)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a restart inherits it, and must not inherit "ignore"
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def become_subreaper() -> bool:
    """Have the kernel assign orphans to this process. Returns False if it cannot."""
    if not sys.platform.startswith("linux") or not _children_file(os.getpid()).exists():
        return False
    import ctypes  # noqa: PLC0415 - for the daemon only

    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        logger.warning(
            "orphans: cannot become a subreaper, orphans of tools leave the daemon's tree: {}",
            os.strerror(ctypes.get_errno()),
        )
        return False
    return True


def to_reap(
    dead: Iterable[DeadChild], seen_at: dict[int, float], *, own_session: int, now: float
) -> tuple[list[int], dict[int, float]]:
    """Split dead children into those to reap now and those to check again, with the time they were first seen."""
    reap, waiting = [], {}
    for child in dead:
        first_seen = seen_at.get(child.pid, now)
        if child.session not in (child.pid, own_session) or now - first_seen >= _UNCLAIMED_S:
            reap.append(child.pid)
        else:
            waiting[child.pid] = first_seen
    return reap, waiting


class OrphanReaper:
    """Reaps dead orphans each time a child of the daemon has ended."""

    def __init__(self, steady: Callable[[], float]) -> None:
        self._steady = steady
        self._child_ended = asyncio.Event()
        self._waiting: dict[int, float] = {}

    def child_ended(self) -> None:
        """Handle SIGCHLD."""
        self._child_ended.set()

    async def run(self) -> None:
        while True:
            self._child_ended.clear()
            await asyncio.to_thread(self._reap)
            with suppress(TimeoutError):
                async with asyncio.timeout(_UNCLAIMED_S if self._waiting else None):
                    await self._child_ended.wait()

    def _reap(self) -> None:
        pids, self._waiting = to_reap(_dead_children(), self._waiting, own_session=os.getsid(0), now=self._steady())
        for pid in pids:
            with suppress(ChildProcessError):  # its own parent's thread was faster
                os.waitpid(pid, os.WNOHANG)


def _dead_children() -> list[DeadChild]:
    found = []
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # the thread ended meanwhile
            for pid in _children_file(int(thread.name)).read_text().split():
                with suppress(OSError):  # reaped meanwhile
                    stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
                    state, _parent, _group, session = stat.rpartition(")")[2].split()[:4]
                    if state in "ZX":
                        found.append(DeadChild(pid=int(pid), session=int(session)))
    return found


def _children_file(thread: int) -> Path:
    return Path(f"/proc/self/task/{thread}/children")
