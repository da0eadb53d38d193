"""Transport of an endpoint, and the decoding of its streams. A stream without progress is ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Protocol

from hermes.agent.models.failure import malformed
from hermes.agent.models.protocols.sse import EventDecoder
from hermes.agent.models.protocols.wire import StreamedAnswer

AFTERMATH_S = 2.0  # for usage and the end of the stream after a complete answer
WIRE_MAX_BYTES = 64 * 1024 * 1024  # of one answer, with all overhead: some 300,000 chunks
ALIVE_TIMES = 10  # idle timeouts that a stream may send keep-alives only, or next to nothing
MIN_GROWTH = 64  # characters of an answer in that time; less is a stream that hardly moves
LIST_S = 5.0  # to list the names of models


class Transport(Protocol):
    def events(
        self, path: str, body: bytes, headers: Mapping[str, str], answer: StreamedAnswer, *, secret: str
    ) -> AsyncGenerator[list[bytes], None]:
        """Yield the data of the events that arrive together, until the stream ends or the answer is over.

        Errors hide the secret.
        """

    async def model_names(self, headers: Mapping[str, str]) -> list[str]:
        """Return the names of the endpoint's models; empty if it does not tell them within seconds."""

    async def close(self) -> None: ...


class EventReader:
    """Reads the data of a stream's events. `broken` are the transport's errors of a broken connection.

    `at_end` tells that everything was read, so that the end of an answer needs no further wait.
    """

    def __init__(
        self,
        chunks: AsyncIterator[bytes],
        answer: StreamedAnswer,
        *,
        idle_timeout_s: float,
        broken: tuple[type[Exception], ...],
        at_end: Callable[[], bool] = lambda: False,
    ) -> None:
        self._chunks = chunks
        self._answer = answer
        self._broken = broken
        self._at_end = at_end
        self._decoder = EventDecoder()
        self._meter = _Meter(ALIVE_TIMES * idle_timeout_s)

    async def next(self) -> list[bytes] | None:
        """Return the data of the events that arrive together; None at the end."""
        while not (self._answer.over and self._at_end()):
            chunk = await _next(self._chunks, self._answer, self._broken)
            if chunk is None:
                break
            self._meter.count(chunk, self._answer.size)
            if together := self._decoder.feed(chunk):
                self._meter.progress()
                return together
        return None


def check_kind(content_type: str) -> None:
    """Raise ModelError unless it is an event stream."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind != "text/event-stream":
        raise malformed(f"the model endpoint sent {kind[:60]!r} instead of a stream of events")


def names_in(listed: object) -> list[str]:
    """Return the names in a list of models."""
    entries = listed.get("data") if isinstance(listed, dict) else None
    found = entries if isinstance(entries, list) else ()
    return [str(each["id"]) for each in found if isinstance(each, dict) and "id" in each]


class _Meter:
    """Stops an endless stream: too many bytes, too long without an event, or an answer that hardly grows."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._size = 0
        self._progress_at = self._grown_at = time.monotonic()
        self._grown_to: int | None = None  # None: the answer has not begun

    def count(self, chunk: bytes, answer_size: int) -> None:
        self._size += len(chunk)
        if self._size > WIRE_MAX_BYTES:
            raise malformed("the answer is too long: it was stopped at 64 MiB of chunks")
        now = time.monotonic()
        if self._grown_to is None or answer_size - self._grown_to >= MIN_GROWTH:
            self._grown_at, self._grown_to = now, answer_size or None
        if now - min(self._progress_at, self._grown_at) > self._patience_s:
            raise TimeoutError

    def progress(self) -> None:
        self._progress_at = time.monotonic()


async def _next(
    chunks: AsyncIterator[bytes], answer: StreamedAnswer, broken: tuple[type[Exception], ...]
) -> bytes | None:
    """Return the next chunk. After a complete answer wait only briefly for the rest, and ignore failures."""
    if not answer.over:
        return await anext(chunks, None)
    try:
        async with asyncio.timeout(AFTERMATH_S):
            return await anext(chunks, None)
    except TimeoutError:
        return None
    except broken:
        return None
