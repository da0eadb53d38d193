"""Gate between reads and map growth: growing moves the map, which would break running reads.

Reads enter the gate and are short. The writer closes it and waits until the last read has ended. It stops waiting
after a while, because a hot backup is a long read.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class WriteGate:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._closed = False

    def __enter__(self) -> None:
        with self._changed:
            while self._closed:
                self._changed.wait()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._inside -= 1
            if self._closed:
                self._changed.notify_all()

    @contextmanager
    def closed(self, timeout_s: float) -> Iterator[bool]:
        """Make new reads wait until the block ends. Yield whether all running reads have ended."""
        with self._changed:
            self._closed = True
            empty = self._changed.wait_for(lambda: self._inside == 0, timeout_s)
        try:
            yield empty
        finally:
            with self._changed:
                self._closed = False
                self._changed.notify_all()
