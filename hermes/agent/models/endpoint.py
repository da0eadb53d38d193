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
from hermes.agent.models.failure import address_of, from_status, from_transport
from hermes.agent.models.transport import LIST_S, EventReader, Transport, check_kind, names_in
from hermes.domain.errors import ModelError
from hermes.system.proxy_environment import proxy_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.agent.models.protocols.wire import StreamedAnswer

ERROR_BODY_MAX_BYTES = 64 * 1024
PIECE_BYTES = 128 * 1024
LIST_MAX_BYTES = 4 << 20
KEEP_S = 15.0  # for an idle connection, before the server may close it


class Endpoint(Transport):
    def __init__(self, *, base_url: str, connect_timeout_s: float, idle_timeout_s: float) -> None:
        """Call it on the event loop that uses it."""
        self._base_url = base_url.rstrip("/")
        self._idle_timeout_s = idle_timeout_s
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Content-Type": "application/json", "User-Agent": f"hermes/{__version__}"},
            proxy=proxy_for(base_url),
            timeout=aiohttp.ClientTimeout(total=None, connect=connect_timeout_s, sock_read=idle_timeout_s),
        )

    async def events(
        self, path: str, body: bytes, headers: Mapping[str, str], answer: StreamedAnswer, *, secret: str
    ) -> AsyncGenerator[list[bytes], None]:
        address = address_of(self._base_url, secret=secret)
        with _translated(address):
            response = await self._session.post(
                f"{self._base_url}{path}",
                data=body if len(body) <= PIECE_BYTES else _pieces(body),
                headers={**headers, "Content-Length": str(len(body))},
                allow_redirects=False,
            )
            try:
                await _check(response, address, secret)
                content = response.content
                reader = EventReader(
                    content.iter_any(),
                    answer,
                    idle_timeout_s=self._idle_timeout_s,
                    broken=(aiohttp.ClientError,),
                    at_end=content.at_eof,
                )
                while (together := await reader.next()) is not None:
                    yield together
            finally:
                response.close()  # keeps the connection if everything was read

    async def model_names(self, headers: Mapping[str, str]) -> list[str]:
        try:
            async with (
                asyncio.timeout(LIST_S),
                self._session.get(f"{self._base_url}/models", headers=headers, allow_redirects=False) as response,
            ):
                answer = json.loads(await response.content.read(LIST_MAX_BYTES)) if response.status == 200 else {}
        except (aiohttp.ClientError, OSError, ValueError):
            return []
        return names_in(answer)

    async def close(self) -> None:
        await self._session.close()


async def _check(response: aiohttp.ClientResponse, address: str, secret: str) -> None:
    """Raise ModelError unless the response is 200 with an event stream."""
    if response.status != 200:
        body = await _beginning(response)
        headers, now = response.headers, time.time()
        raise ModelError(from_status(response.status, headers, body, secret=secret, now=now, address=address))
    check_kind(response.headers.get("content-type", ""))


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
