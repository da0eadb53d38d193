"""HTTP client of a model endpoint: sends a request body, yields the data of events.

It uses aiohttp, which the daemon needs anyway. The `openai` package would cost 0.4 s at the first turn of each boot,
25 MB, and 0.5 ms for every call. It also accepts a truncated stream as an answer, and reads keys and addresses from
the environment. This client reads only proxies from there. It does not follow redirects.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import aiohttp

from hermes import __version__
from hermes.agent.models.failure import address_of, from_status, from_transport, malformed
from hermes.agent.models.sse import EventDecoder
from hermes.domain.errors import ModelError
from hermes.system.proxy_environment import proxy_for

if TYPE_CHECKING:
    from hermes.agent.models.completion import StreamedCompletion

AFTERMATH_S = 2.0  # for usage and the end of the stream after a complete answer
ERROR_BODY_MAX_BYTES = 64 * 1024
PIECE_BYTES = 128 * 1024
WIRE_MAX_BYTES = 64 * 1024 * 1024  # of one answer, with all overhead: some 300,000 chunks
ALIVE_TIMES = 10  # idle timeouts that a stream may send keep-alives only
KEEP_S = 15.0  # for an idle connection, before the server may close it


class Endpoint:
    def __init__(self, *, base_url: str, key: str, connect_timeout_s: float, idle_timeout_s: float) -> None:
        """Call it on the event loop that uses it."""
        self._key = key
        self._address = address_of(base_url, secret=key)
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._patience_s = ALIVE_TIMES * idle_timeout_s
        headers = {"Content-Type": "application/json", "User-Agent": f"hermes/{__version__}"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
            proxy=proxy_for(base_url),
            timeout=aiohttp.ClientTimeout(total=None, connect=connect_timeout_s, sock_read=idle_timeout_s),
        )

    async def events(self, body: bytes, completion: StreamedCompletion) -> AsyncGenerator[bytes, None]:
        """Yield the data of every event, until the stream ends or the completion is over."""
        with _translated(self._address):
            response = await self._session.post(
                self._url, data=_pieces(body), headers={"Content-Length": str(len(body))}, allow_redirects=False
            )
            try:
                await self._check(response)
                decoder, meter = EventDecoder(), _Meter(self._patience_s)
                chunks = response.content.iter_any()
                while (chunk := await _next(chunks, completion)) is not None:
                    meter.count(chunk)
                    for data in decoder.feed(chunk):
                        meter.progress()
                        yield data
            finally:
                response.close()  # keeps the connection if everything was read

    async def close(self) -> None:
        await self._session.close()

    async def _check(self, response: aiohttp.ClientResponse) -> None:
        """Raise ModelError unless the response is 200 with an event stream."""
        if response.status != 200:
            body = await _beginning(response)
            headers, now, address = response.headers, time.time(), self._address
            raise ModelError(from_status(response.status, headers, body, secret=self._key, now=now, address=address))
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "text/event-stream":
            raise malformed(f"the model endpoint sent {kind[:60]!r} instead of a stream of events")


class _Meter:
    """Stops an endless stream: too many bytes, or too long without an event."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._size = 0
        self._progress_at = time.monotonic()

    def count(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > WIRE_MAX_BYTES:
            raise malformed("the answer is too long: it was stopped at 64 MiB of chunks")
        if time.monotonic() - self._progress_at > self._patience_s:
            raise TimeoutError

    def progress(self) -> None:
        self._progress_at = time.monotonic()


async def _next(chunks: AsyncIterator[bytes], completion: StreamedCompletion) -> bytes | None:
    """Return the next chunk. After a complete answer wait only briefly for the rest, and ignore failures."""
    try:
        async with asyncio.timeout(AFTERMATH_S if completion.over else None):
            return await anext(chunks, None)
    except (TimeoutError, aiohttp.ClientError):
        if completion.over:
            return None
        raise


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    """Yield the body in pieces, so that the event loop runs in between."""
    for start in range(0, len(body), PIECE_BYTES):
        yield body[start : start + PIECE_BYTES]


async def _beginning(response: aiohttp.ClientResponse) -> bytes:
    body = b""
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) >= ERROR_BODY_MAX_BYTES:
            break
    return body


@contextmanager
def _translated(address: str) -> Iterator[None]:
    try:
        yield
    except (aiohttp.ClientError, OSError) as error:
        raise ModelError(from_transport(error, address=address)) from error
