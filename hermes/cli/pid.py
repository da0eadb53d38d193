"""A process that somebody else started, by its number."""

from __future__ import annotations

import os
import select
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def process_of(pid: Any) -> Iterator[int | None]:
    """A handle on the process, whose number cannot come to mean another one; None: there is none to wait for."""
    handle = None
    with suppress(OSError, TypeError):
        handle = os.pidfd_open(pid)
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


def has_ended(process: int | None) -> bool:
    return process is None or bool(select.select([process], [], [], 0)[0])


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's by now
        return False
    return True
