"""The `openai` client, used at its public low level: bytes go out, the data of events comes back.

What is kept of the client is its auth, its connection pool and its timeouts. Reading is done here: the client takes a
truncated stream for an answer, and its typed chunks cost 190 µs each against 12 µs. It runs on its aiohttp transport,
1.4 ms of CPU a call where its default one takes 3.0 ms. Key, address and organisation are ours to say: it must not
find them in the environment (proxies are looked for there, as everywhere). Redirects are not followed: messages go to
the configured host and to no other.

Importing this module takes a second. Only `openai_model` does, in a worker thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import aiohttp
import httpx2
import openai

from hermes.agent.failure import from_status, from_transport, malformed
from hermes.agent.sse import EventDecoder
from hermes.errors import ModelError

if TYPE_CHECKING:
    from hermes.agent.completion import Completion

AFTERMATH_S = 2.0  # for usage and the end of the stream, once the answer itself is complete
ERROR_BODY_MAX_BYTES = 64 * 1024
PIECE_BYTES = 128 * 1024
WIRE_MAX_BYTES = 64 * 1024 * 1024  # of one answer, with all that is not text: some 300,000 chunks
ALIVE_TIMES = 10  # as long as the idle timeout a stream may say that it is alive and nothing else


class Endpoint:
    def __init__(self, *, base_url: str, key: str, connect_timeout_s: float, idle_timeout_s: float) -> None:
        self._key = key
        self._url = f"{base_url.rstrip('/')}/chat/completions"  # whole: joining addresses costs more than it should
        self._patience_s = ALIVE_TIMES * idle_timeout_s
        timeout = openai.Timeout(idle_timeout_s, connect=connect_timeout_s)
        hooks = {"response": [self._refuse]}
        self._client = openai.AsyncOpenAI(
            api_key=key or "none",  # it insists on one; without ours the header is left out
            base_url=base_url,
            timeout=timeout,
            max_retries=0,
            http_client=openai.DefaultAioHttpClient(timeout=timeout, follow_redirects=False, event_hooks=hooks),
        )
        self._headers: dict[str, Any] = dict.fromkeys(("OpenAI-Organization", "OpenAI-Project"), openai.Omit())
        if not key:
            self._headers["Authorization"] = openai.Omit()

    async def events(self, body: bytes, completion: Completion) -> AsyncGenerator[bytes, None]:
        """The data of every event, until the stream ends or the completion is over."""
        with _translated():
            response = await self._post(body)
            decoder, meter = EventDecoder(), _Meter(self._patience_s)
            chunks = response.aiter_bytes()
            try:
                while (chunk := await _next(chunks, completion)) is not None:
                    meter.count(chunk)
                    for data in decoder.feed(chunk):
                        meter.progress()
                        yield data
            finally:
                await response.aclose()

    async def close(self) -> None:
        await self._client.close()

    async def _post(self, body: bytes) -> httpx2.Response:
        response = await self._client.post(
            self._url,
            content=_pieces(body),
            options={"headers": {**self._headers, "Content-Length": str(len(body))}},
            cast_to=httpx2.Response,
            stream=True,
            stream_cls=openai.AsyncStream[Any],
        )
        return cast("httpx2.Response", response)  # what `cast_to` says; the client's types do not know

    async def _refuse(self, response: httpx2.Response) -> None:
        """Only 200 with an event stream is an answer. A hook, because the client reads the body of an error whole."""
        if response.status_code != 200:
            body = await _beginning(response)
            why = from_status(response.status_code, response.headers, body, secret=self._key, now=time.time())
            raise ModelError(why)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "text/event-stream":
            raise malformed(f"the model endpoint sent {kind[:60]!r} instead of a stream of events")


class _Meter:
    """Ends a stream that has no end: too many bytes, or signs of life for too long and never an event."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._size = 0
        self._progress_at = time.monotonic()

    def count(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > WIRE_MAX_BYTES:
            raise malformed("the answer has no end: it was stopped at 64 MiB of chunks")
        if time.monotonic() - self._progress_at > self._patience_s:
            raise TimeoutError

    def progress(self) -> None:
        self._progress_at = time.monotonic()


async def _next(chunks: AsyncIterator[bytes], completion: Completion) -> bytes | None:
    """A complete answer is read to its end, so that the connection is kept; but only briefly, and it may fail."""
    try:
        async with asyncio.timeout(AFTERMATH_S if completion.over else None):
            return await anext(chunks, None)
    except (TimeoutError, httpx2.HTTPError):
        if completion.over:
            return None
        raise


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    """A long history goes out as fast as it is taken, and the loop runs in between."""
    for start in range(0, len(body), PIECE_BYTES):
        yield body[start : start + PIECE_BYTES]


async def _beginning(response: httpx2.Response) -> bytes:
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) >= ERROR_BODY_MAX_BYTES:
            break
    return body


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    # The transport lets some of aiohttp's errors through as they are.
    except (openai.OpenAIError, httpx2.HTTPError, aiohttp.ClientError, OSError) as error:
        raise ModelError(from_transport(error)) from error
