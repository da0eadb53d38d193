"""Handle on a process that another program started, by pid."""

from __future__ import annotations

import os
import select
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from hermes.domain.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedProcess:
    pid: int
    descriptor: int | None  # pidfd; None where the system has none: the pid could be reused then


@contextmanager
def watch_process(pid: Any) -> Iterator[WatchedProcess | None]:
    """Yield a handle on the process; None if it does not run."""
    if not hasattr(os, "pidfd_open"):  # not Linux
        yield WatchedProcess(pid=pid, descriptor=None) if isinstance(pid, int) and is_alive(pid) else None
        return
    handle = None
    with suppress(OSError, TypeError):
        handle = os.pidfd_open(pid)
    try:
        yield None if handle is None else WatchedProcess(pid=pid, descriptor=handle)
    finally:
        if handle is not None:
            os.close(handle)


def has_ended(process: WatchedProcess | None) -> bool:
    if process is None:
        return True
    if process.descriptor is None:
        return not is_alive(process.pid)
    return bool(select.select([process.descriptor], [], [], 0)[0])


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # the pid was reused by another user
        return False
    return True
