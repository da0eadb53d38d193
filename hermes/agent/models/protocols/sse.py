"""Decoder of server-sent events. It returns only their data, not names and ids."""

from __future__ import annotations

from hermes.agent.models.failure import malformed

EVENT_MAX_BYTES = 16 * 1024 * 1024


class EventDecoder:
    """Incremental decoder: `feed` returns the data of complete events. A partial last event is dropped."""

    def __init__(self, limit_bytes: int = EVENT_MAX_BYTES) -> None:
        self._limit = limit_bytes
        self._tail: list[bytes] = []  # a line without its end, in pieces so that a long one is joined once
        self._data: list[bytes] = []
        self._data_size = 0
        self._size = 0  # of both

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of the events that this chunk completes."""
        complete: list[bytes] = []
        self._size += len(chunk)
        self._tail.append(chunk)
        if b"\n" in chunk or b"\r" in chunk or self._tail[0].endswith(b"\r"):
            lines = b"".join(self._tail).splitlines(keepends=True)
            # A carriage return at the end may be the first half of a line ending.
            self._tail = [] if lines[-1].endswith(b"\n") else [lines.pop()]
            for line in lines:
                self._take(line.rstrip(b"\r\n"), complete)
            self._size = sum(map(len, self._tail)) + self._data_size
        if self._size > self._limit:
            raise malformed("the model endpoint sent an event that is too large")
        return complete

    def _take(self, line: bytes, complete: list[bytes]) -> None:
        if not line and self._data:
            data, self._data, self._data_size = self._data, [], 0
            complete.append(b"\n".join(data))
        elif line.startswith(b"data:"):
            self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            self._data_size += len(line)  # also of an empty one: it takes room in the list
