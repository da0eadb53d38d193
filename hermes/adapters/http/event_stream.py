"""Server-sent events. The connection drops a client that does not read; a write here waits its turn."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from hermes.adapters.http import presentation
from hermes.adapters.http.connection import connection_of
from hermes.adapters.http.problem import Problem
from hermes.adapters.http.turnstile import Turnstile

PIECE_BYTES: Final = 32 << 10
PIECES_A_ROUND: Final = 16  # of all streams together: half a megabyte takes a few milliseconds


def frame(data: Any, event: str = "", place: str = "") -> bytes:
    """Encode an event. `place` is the id from which a client can continue."""
    name = f"event: {event}\n".encode() if event else b""
    number = f"id: {place}\n".encode() if place else b""
    return b"".join((number, name, b"data: ", presentation.encode(data), b"\n\n"))


class EventStream:
    def __init__(self, turnstile: Turnstile) -> None:
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        self.response = web.StreamResponse(headers=headers)
        self._turnstile = turnstile
        self._unsent = memoryview(b"")

    async def send(self, data: Any, event: str = "") -> None:
        await self.send_frame(frame(data, event))

    async def send_frame(self, encoded: bytes) -> None:
        """Send an event in pieces, so that a long one neither delays others nor fills a buffer for each reader.

        If it is cancelled in between, the next send finishes it first.
        """
        await self._send_unsent()
        if len(encoded) <= PIECE_BYTES:
            await self.response.write(encoded)
            return
        self._unsent = memoryview(encoded)
        await self._send_unsent()

    async def _send_unsent(self) -> None:
        while self._unsent:
            await self._turnstile()
            piece, self._unsent = self._unsent[:PIECE_BYTES], self._unsent[PIECE_BYTES:]
            await self.response.write(piece)

    async def ping(self) -> None:
        await self.send_frame(b": ping\n\n")

    async def done(self) -> None:
        await self.send_frame(b"data: [DONE]\n\n")

    async def fail(self, problem: Problem) -> None:
        """Send an error as the last event. No [DONE] follows: the text so far is not an answer."""
        await self.send(problem.body())


TURNSTILE = web.AppKey("turnstile", Turnstile)
STREAM = web.RequestKey("event_stream", EventStream)


async def open_stream(request: web.Request) -> EventStream:
    """Start a stream. Later errors of the request become events of it."""
    stream = EventStream(request.app[TURNSTILE])
    connection_of(request).streams()
    await stream.response.prepare(request)
    request[STREAM] = stream
    return stream
