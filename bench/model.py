"""Fake model for the bench: chat completions with a delay, a token rate or a tool call, as the last message asks.

A message of a person that ends with `[delay=1 tokens=50 rate=50]` gets its answer after one second, as 50 tokens at
50 a second. `[tool]` gets a call of `read_file` first. Otherwise the answer comes immediately, in two pieces.
It is a bare protocol, not a web framework, so that it takes little of the processor that it shares with the daemon.

    python -m bench.model      # prints its address
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any, cast

_WISH = re.compile(rb"\[((?:[a-z]+(?:=[\d.]+)? ?)+)\]\"")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_HEADER = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def _event(value: dict[str, Any]) -> bytes:
    data = b"data: " + json.dumps(value).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


def _chunk(**choice: Any) -> bytes:
    return _event(
        {"id": "c", "object": "chat.completion.chunk", "model": "bench", "choices": [{"index": 0, **choice}]}
    )


_TOKEN = _chunk(delta={"content": "word "})
_CALL = {"index": 0, "id": "call_1", "function": {"name": "read_file", "arguments": '{"path":"note.txt"}'}}
_USAGE = _event({"id": "c", "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 5}})
_DONE = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
_END = _chunk(delta={}, finish_reason="stop") + _USAGE + _DONE
_ANSWER = _chunk(delta={"role": "assistant", "content": "An answer "}) + _chunk(delta={"content": "of a few words."})
_TOOL = _chunk(delta={"tool_calls": [_CALL]}) + _chunk(delta={}, finish_reason="tool_calls") + _USAGE + _DONE
_WHOLE = json.dumps(
    {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "bench",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "An answer of a few words."},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105},
    }
).encode()
_WHOLE_ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_WHOLE) + _WHOLE
)
_MODELS = b'{"object":"list","data":[{"id":"bench","object":"model"}]}'
_MODEL_LIST = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_MODELS) + _MODELS
)


class Model(asyncio.Protocol):
    def __init__(self) -> None:
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self._answering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, problem: Exception | None) -> None:  # noqa: ARG002 - the protocol's signature
        if self._answering is not None:
            self._answering.cancel()

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        found = _LENGTH.search(self._received, 0, end + 2)
        length = end + 4 + (int(found[1]) if found else 0)
        if len(self._received) < length:
            return
        request = bytes(self._received[:length])
        del self._received[:length]
        if request.startswith(b"GET "):
            self._transport.write(_MODEL_LIST)
        else:
            self._answer(request)

    def _answer(self, request: bytes) -> None:
        assert self._transport is not None
        asked = _last(request, b"user")
        found = _WISH.search(request, asked)
        wish = dict(each.partition("=")[::2] for each in found[1].decode().split()) if found else {}
        if "tool" in wish and _last(request, b"tool") < asked:
            self._transport.write(_HEADER + _TOOL)
        elif "delay" in wish or "tokens" in wish:
            speaking = _speak(
                self._transport, float(wish.get("delay", 0)), int(wish.get("tokens", 0)), float(wish.get("rate", 50))
            )
            self._answering = asyncio.ensure_future(speaking)
        elif b'"stream":true' in request or b'"stream": true' in request:
            self._transport.write(_HEADER + _ANSWER + _END)
        else:
            self._transport.write(_WHOLE_ANSWER)


def _last(request: bytes, role: bytes) -> int:
    """Return where the last message of that role begins."""
    return max(request.rfind(b'"role":"%b"' % role), request.rfind(b'"role": "%b"' % role))


async def _speak(to: asyncio.Transport, delay_s: float, tokens: int, rate: float) -> None:
    await asyncio.sleep(delay_s)
    to.write(_HEADER if tokens else _HEADER + _ANSWER)
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in range(tokens):
        await asyncio.sleep(began + number / rate - loop.time())
        to.write(_TOKEN)
    to.write(_END)


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(Model, "127.0.0.1", 0, backlog=4096)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
