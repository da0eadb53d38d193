"""Server-sent events. The connection drops a reader that takes nothing; here a write simply waits its turn."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from hermes.adapters import presentation
from hermes.adapters.openai_api.problem import Problem


class EventStream:
    def __init__(self) -> None:
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        self.response = web.StreamResponse(headers=headers)

    async def send(self, data: Any, event: str = "", place: str = "") -> None:
        """`place` is where a client that comes back can go on from."""
        await self._write(presentation.encode(data), event, place)

    async def ping(self) -> None:
        await self.response.write(b": ping\n\n")

    async def done(self) -> None:
        await self._write(b"[DONE]")

    async def fail(self, problem: Problem) -> None:
        """The last thing a failed stream says. No [DONE] follows: what came before is not an answer."""
        await self._write(presentation.encode(problem.body()))

    async def _write(self, data: bytes, event: str = "", place: str = "") -> None:
        name = f"event: {event}\n".encode() if event else b""
        number = f"id: {place}\n".encode() if place else b""
        await self.response.write(number + name + b"data: " + data + b"\n\n")


STREAM = web.RequestKey("event_stream", EventStream)


async def open_stream(request: web.Request) -> EventStream:
    """From here on the request's errors are events of its stream."""
    stream = EventStream()
    await stream.response.prepare(request)
    request[STREAM] = stream
    return stream
