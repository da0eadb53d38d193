"""HTTP client of a model endpoint: sends a request body, yields the data of events.

It uses aiohttp, which the daemon needs anyway (docs/decisions/0013-model-endpoint-over-aiohttp.md). It reads only
proxies from the environment, and does not follow redirects.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import aiohttp

from hermes import __version__
from hermes.agent.models.failure import address_of, from_status, from_transport, malformed
from hermes.agent.models.protocols.sse import EventDecoder
from hermes.domain.errors import ModelError
from hermes.system.proxy_environment import proxy_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.agent.models.protocols.wire import StreamedAnswer

AFTERMATH_S = 2.0  # for usage and the end of the stream after a complete answer
ERROR_BODY_MAX_BYTES = 64 * 1024
PIECE_BYTES = 128 * 1024
WIRE_MAX_BYTES = 64 * 1024 * 1024  # of one answer, with all overhead: some 300,000 chunks
ALIVE_TIMES = 10  # idle timeouts that a stream may send keep-alives only, or next to nothing
MIN_GROWTH = 64  # characters of an answer in that time; less is a stream that hardly moves
LIST_S = 5.0
LIST_MAX_BYTES = 4 << 20
KEEP_S = 15.0  # for an idle connection, before the server may close it


class Endpoint:
    def __init__(self, *, base_url: str, connect_timeout_s: float, idle_timeout_s: float) -> None:
        """Call it on the event loop that uses it."""
        self._base_url = base_url.rstrip("/")
        self._patience_s = ALIVE_TIMES * idle_timeout_s
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Content-Type": "application/json", "User-Agent": f"hermes/{__version__}"},
            proxy=proxy_for(base_url),
            timeout=aiohttp.ClientTimeout(total=None, connect=connect_timeout_s, sock_read=idle_timeout_s),
        )

    async def events(
        self, path: str, body: bytes, headers: Mapping[str, str], answer: StreamedAnswer, *, secret: str
    ) -> AsyncGenerator[bytes, None]:
        """Yield the data of every event, until the stream ends or the answer is over. Errors hide the secret."""
        address = address_of(self._base_url, secret=secret)
        with _translated(address):
            response = await self._session.post(
                f"{self._base_url}{path}",
                data=_pieces(body),
                headers={**headers, "Content-Length": str(len(body))},
                allow_redirects=False,
            )
            try:
                await _check(response, address, secret)
                decoder, meter = EventDecoder(), _Meter(self._patience_s)
                chunks = response.content.iter_any()
                while (chunk := await _next(chunks, answer)) is not None:
                    meter.count(chunk, answer.size)
                    for data in decoder.feed(chunk):
                        meter.progress()
                        yield data
            finally:
                response.close()  # keeps the connection if everything was read

    async def model_names(self, headers: Mapping[str, str]) -> list[str]:
        """Return the names of the endpoint's models; empty if it does not tell them within seconds."""
        try:
            async with (
                asyncio.timeout(LIST_S),
                self._session.get(f"{self._base_url}/models", headers=headers, allow_redirects=False) as response,
            ):
                answer = json.loads(await response.content.read(LIST_MAX_BYTES)) if response.status == 200 else {}
        except (aiohttp.ClientError, OSError, ValueError):
            return []
        entries = answer.get("data") if isinstance(answer, dict) else None
        return [str(each["id"]) for each in entries or () if isinstance(each, dict) and "id" in each]

    async def close(self) -> None:
        await self._session.close()


async def _check(response: aiohttp.ClientResponse, address: str, secret: str) -> None:
    """Raise ModelError unless the response is 200 with an event stream."""
    if response.status != 200:
        body = await _beginning(response)
        headers, now = response.headers, time.time()
        raise ModelError(from_status(response.status, headers, body, secret=secret, now=now, address=address))
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "text/event-stream":
        raise malformed(f"the model endpoint sent {kind[:60]!r} instead of a stream of events")


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


async def _next(chunks: AsyncIterator[bytes], answer: StreamedAnswer) -> bytes | None:
    """Return the next chunk. After a complete answer wait only briefly for the rest, and ignore failures."""
    try:
        async with asyncio.timeout(AFTERMATH_S if answer.over else None):
            return await anext(chunks, None)
    except (TimeoutError, aiohttp.ClientError):
        if answer.over:
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
