"""A scriptable model endpoint, good and bad. Its own replies speak chat completions; others are built by
`messages_protocol` and `responses_protocol`.

It records every request and plays one `Reply` per request: first what `script` queued, then what `handler` decides.
A reply is a status, headers and parts; parts are bytes on the wire, a `Drip` (the same bytes again and again until
the client leaves), a `Hold` (silence until its gate opens), `STALL` (silence until the client leaves) and `CUT` (the
connection is reset). Run as a program it is a server of its own, for tests that kill the daemon:

    python -m tests.support.model_server --port 0 --log requests.jsonl
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any, Self, TypeAlias

from aiohttp import web

DEADLINE_S = 30.0
EVENT_STREAM: Mapping[str, str] = {"Content-Type": "text/event-stream"}


class Wire(Enum):
    STALL = auto()
    CUT = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drip:
    data: bytes
    every_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    gate: asyncio.Event  # of the server's loop


STALL, CUT = Wire.STALL, Wire.CUT
Part: TypeAlias = bytes | Wire | Drip | Hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: EVENT_STREAM)
    parts: tuple[Part, ...] = ()


def event(payload: object) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def delta(finish: str | None = None, **fields: Any) -> bytes:
    """One chunk of a completion; `content="…"` and `tool_calls=[…]` are its fields."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return event({"id": "c1", "object": "chat.completion.chunk", "model": "fake-1", "choices": [choice]})


def usage(prompt: int, completion: int) -> bytes:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return event({"id": "c1", "object": "chat.completion.chunk", "model": "fake-1", "choices": [], "usage": counts})


def stream(*parts: Part) -> Reply:
    return Reply(parts=parts)


def answer(text: str, *, chunks: int = 1, finish: str | None = "stop") -> Reply:
    """A good answer in so many chunks; with `finish=None` one that ends as if it had been truncated."""
    size = max(1, -(-len(text) // chunks))
    pieces = [delta(content=text[at : at + size]) for at in range(0, len(text), size)]
    end = [] if finish is None else [delta(finish), usage(7, len(text.split()))]
    return stream(*pieces, *end, DONE)


def error(status: int, *, code: str = "", kind: str = "", message: str = "no", **headers: str) -> Reply:
    """An error as OpenAI shapes it. Headers are given as `retry_after="1"`."""
    body = json.dumps({"error": {"message": message, "type": kind or None, "code": code or None}}).encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, headers={"Content-Type": "application/json", **names}, parts=(body,))


def page(status: int, html: str = "<html><h1>Bad Gateway</h1></html>") -> Reply:
    return Reply(status=status, headers={"Content-Type": "text/html"}, parts=(html.encode(),))


class ModelServer:
    """`async with ModelServer() as server`, then point a model at `server.base_url`."""

    def __init__(self, *, port: int = 0, log: Path | None = None) -> None:
        """With a log, what came is kept there alone."""
        self.requests: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []  # the same, exactly as they came
        self.headers: list[Mapping[str, str]] = []
        self.peers: list[object] = []  # where they came from
        self.models: list[dict[str, Any]] = [{"id": "fake-1", "object": "model"}]
        self.left = 0  # clients that went away before their reply was over
        self.stalled = 0  # replies that fell silent
        self.handler: Callable[[dict[str, Any], int], Reply] = lambda body, number: answer(f"ok {number}")
        self.base_url = ""
        self._script: deque[Reply] = deque()
        self._port = port
        self._log = log
        self._answered = 0
        self._runner: web.AppRunner | None = None

    def script(self, *replies: Reply) -> None:
        self._script.extend(replies)

    def texts(self, request: int = -1) -> list[str]:
        """What the messages of a request said."""
        return [message["content"] for message in self.requests[request]["messages"]]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while True:
                if condition():
                    return
                await asyncio.sleep(0.005)

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 28)
        for path in ("/v1/chat/completions", "/v1/messages", "/v1/responses"):
            app.router.add_post(path, self._complete)
        app.router.add_get("/v1/models", self._list)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self._record(request, body)
        self._answered += 1
        reply = self._script.popleft() if self._script else self.handler(self.requests[-1], self._answered)
        response = web.StreamResponse(status=reply.status, headers=reply.headers)
        try:
            await self._play(request, response, reply.parts)
        except ConnectionResetError:
            self.left += 1
        except asyncio.CancelledError:
            self.left += 1
            raise
        return response

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": self.models})

    def _record(self, request: web.Request, body: bytes) -> None:
        if self._log is not None:
            for kept in (self.bodies, self.requests, self.headers, self.peers):
                kept.clear()
        self.bodies.append(body)
        self.requests.append(json.loads(body))
        self.headers.append(dict(request.headers))
        self.peers.append(request.transport and request.transport.get_extra_info("peername"))
        if self._log is not None:
            with self._log.open("ab") as log:
                log.write(json.dumps(self.requests[-1]).encode() + b"\n")

    async def _play(self, request: web.Request, response: web.StreamResponse, parts: Sequence[Part]) -> None:
        for part in parts:
            if part is STALL:
                self.stalled += 1
                await asyncio.Event().wait()
            elif isinstance(part, Hold):
                await part.gate.wait()
            elif isinstance(part, Drip):
                await response.prepare(request)
                while True:
                    await response.write(part.data)
                    await asyncio.sleep(part.every_s)
            elif part is CUT:
                await asyncio.sleep(0)  # what was written goes out first
                assert request.transport is not None
                request.transport.abort()
                return
            else:
                assert isinstance(part, bytes)
                await response.prepare(request)  # here, so that a reply can stall or break before its headers
                await response.write(part)
        await response.prepare(request)
        await response.write_eof()


async def serve(port: int, log: Path) -> None:
    async with ModelServer(port=port, log=log) as server:
        print(server.base_url, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.support.model_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path, required=True, help="gets every request body as a line of JSON")
    options = parser.parse_args()
    asyncio.run(serve(options.port, options.log))


if __name__ == "__main__":
    main()
