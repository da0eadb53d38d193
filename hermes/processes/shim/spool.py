"""Spool of a command's output on disk, limited in size."""

from __future__ import annotations

import os

from hermes.processes.shim.status import remove


class Spool:
    """Output files. Bytes that cannot be stored are counted and dropped: a full disk must not block the command."""

    def __init__(self, segment_bytes: int) -> None:
        self._size = segment_bytes
        self._number = 0
        self._file = _segment(0)
        self.total = 0
        self.dropped = 0
        self.problem = ""

    def _next(self) -> None:
        number = self.total // self._size
        new = _segment(number)
        os.close(self._file)
        self._file, self._number = new, number
        if number >= 2:
            remove(f"output.{number - 2}")

    def add(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            room = self._size - self.total % self._size
            try:
                if room == self._size and self._number != self.total // self._size:
                    self._next()
                written = os.write(self._file, view[:room])
            except OSError as error:
                self.problem = error.strerror or str(error)
                self.dropped += len(view)
                return
            self.total += written
            view = view[written:]


def _segment(number: int) -> int:
    return os.open(f"output.{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
