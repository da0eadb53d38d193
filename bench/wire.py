"""HTTP/1.1 client that costs little: thousands of requests a second leave the processor to the daemon.

One connection carries one request at a time. It understands a body with `Content-Length`, a chunked one,
or one that ends with the connection.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self, cast
from urllib.parse import urlsplit

FIRST_WORDS = (b'"content":"An', b'"content": "An', b'"content":"word', b'"content": "word')  # see bench/model.py


@dataclass(slots=True)
class Exchange:
    """One request and its answer. Times are those of `time.perf_counter`."""

    began: float
    status: int = 0
    retry_after_s: float = 0.0
    body: bytes = b""
    arrivals: list[float] = field(default_factory=list)  # of each piece of the body
    first_at: float = 0.0  # arrival of the first piece with text of the model
    ended: float = 0.0

    @property
    def took_s(self) -> float:
        return self.ended - self.began

    @property
    def first_s(self) -> float:
        """Return the seconds until the first text of the model."""
        assert self.first_at, "the answer has no text"
        return self.first_at - self.began


class Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._done: asyncio.Future[Exchange] | None = None
        self._length: int | None = None  # of the body; None: chunked or until the end
        self._chunked = False
        self._in_body = False

    @classmethod
    async def open(cls, address: str) -> Self:
        parts = urlsplit(address)
        assert parts.hostname
        assert parts.port
        made = await asyncio.get_running_loop().create_connection(cls, parts.hostname, parts.port)
        return made[1]

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def send(self, request: bytes) -> asyncio.Future[Exchange]:
        assert self._transport is not None
        self._received.clear()
        self._in_body, self._length, self._chunked = False, None, False
        self._exchange = Exchange(time.perf_counter())
        self._done = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._done

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        exchange = self._exchange
        if exchange is None:
            return
        self._received += data
        if not self._in_body and not self._read_header(exchange):
            return
        if self._received:
            exchange.arrivals.append(time.perf_counter())
            if not exchange.first_at and any(text in self._received for text in FIRST_WORDS):
                exchange.first_at = exchange.arrivals[-1]
        if self._chunked and self._received.endswith(b"0\r\n\r\n"):
            self._end(_joined(bytes(self._received)))
        elif self._length is not None and len(self._received) >= self._length:
            self._end(bytes(self._received))

    def _read_header(self, exchange: Exchange) -> bool:
        header, found, rest = bytes(self._received).partition(b"\r\n\r\n")
        if not found:
            return False
        lines = header.split(b"\r\n")
        exchange.status = int(lines[0].split(b" ", 2)[1])
        fields = dict(line.lower().split(b": ", 1) for line in lines[1:])
        exchange.retry_after_s = float(fields.get(b"retry-after", 0))
        self._chunked = fields.get(b"transfer-encoding") == b"chunked"
        if b"content-length" in fields:
            self._length = int(fields[b"content-length"])
        self._received = bytearray(rest)
        self._in_body = True
        return True

    def connection_lost(self, problem: Exception | None) -> None:
        if self._done is not None and not self._done.done():
            if problem is None and self._in_body and not self._chunked and self._length is None:
                self._end(bytes(self._received))
            else:
                self._done.set_exception(ConnectionResetError("the connection was closed"))

    def _end(self, body: bytes) -> None:
        exchange, done = self._exchange, self._done
        assert exchange is not None
        assert done is not None
        self._exchange = None
        exchange.body = body
        exchange.ended = time.perf_counter()
        if not done.done():
            done.set_result(exchange)


def _joined(chunked: bytes) -> bytes:
    parts = []
    while chunked:
        size, _, rest = chunked.partition(b"\r\n")
        length = int(size.partition(b";")[0], 16)
        parts.append(rest[:length])
        chunked = rest[length + 2 :] if length else b""
    return b"".join(parts)


def post(path: str, body: dict[str, Any], **headers: str) -> bytes:
    """Return a POST request with a JSON body."""
    encoded = json.dumps(body).encode()
    fields = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{fields}"
        f"Content-Length: {len(encoded)}\r\n\r\n"
    ).encode() + encoded


Request = Callable[[str, str], bytes]  # (session, text)


def turn(key: str, *, stream: bool = False) -> Request:
    """Return a maker of requests for one turn of a session, with the daemon's key."""

    def request(session: str, text: str) -> bytes:
        body = {"model": "hermes", "messages": [{"role": "user", "content": text}], "stream": stream}
        return post("/v1/chat/completions", body, Authorization=f"Bearer {key}", X_Hermes_Session_Id=session)

    return request
