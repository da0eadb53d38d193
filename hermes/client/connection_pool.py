"""HTTP below the client: one aiohttp session, errors translated, event streams parsed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from hermes.client.api_error import ApiError, ConnectionFailedError
from hermes.domain.errors import HermesError
from hermes.domain.text.server_event import EventParser, RawEvent

_QUIET_S = 60.0  # the server sends something at least every 15 s


class StreamOverError(HermesError):
    """A stream has no events after the given one."""

    code = "stream_over"


class ConnectionPool:
    def __init__(self, base_url: str, key: str, *, socket: str = "", timeout_s: float = 600.0) -> None:
        """`socket` is the path of a Unix socket, in place of TCP."""
        self._base_url = base_url
        self._headers = {"Authorization": f"Bearer {key}"}
        self._socket = socket
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(self, method: str, path: str, **options: Any) -> Any:
        """Return the JSON answer of a request. Raises ApiError, ConnectionFailedError."""
        return json.loads(await self.read(method, path, **options))

    async def read(self, method: str, path: str, **options: Any) -> bytes:
        async with self._response(method, path, **options) as response:
            return await response.read()

    async def events(
        self, method: str, path: str, *, last_id: str = "", headers: Mapping[str, str] | None = None, **options: Any
    ) -> AsyncIterator[RawEvent]:
        """Yield the events of a stream until it ends."""
        resume = {"Last-Event-ID": last_id} if last_id else {}
        timeout = aiohttp.ClientTimeout(total=None, sock_read=_QUIET_S)
        parser = EventParser(last_id=last_id)
        given = {**(headers or {}), **resume}
        async with self._response(method, path, timeout=timeout, headers=given, **options) as response:
            if response.status == 204:
                raise StreamOverError("there are no more events")
            rest = b""
            async for piece in response.content.iter_any():
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if (event := parser.feed(line.decode("utf-8", "replace").removesuffix("\r"))) is not None:
                        yield event

    @asynccontextmanager
    async def _response(self, method: str, path: str, **options: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        if self._session is None:
            connector = aiohttp.UnixConnector(self._socket) if self._socket else aiohttp.TCPConnector(limit=0)
            timeout = aiohttp.ClientTimeout(total=self._timeout_s)
            self._session = aiohttp.ClientSession(
                self._base_url, connector=connector, headers=self._headers, timeout=timeout
            )
        try:
            async with self._session.request(method, path, **options) as response:
                if response.status >= 400:
                    raise await _refusal(response)
                yield response
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ConnectionFailedError(f"{method} {path}: {str(error) or type(error).__name__}") from error


async def _refusal(response: aiohttp.ClientResponse) -> ApiError:
    text = await response.text()
    try:
        error = json.loads(text)["error"]
        message, code = str(error["message"]), str(error["code"] or "")
    except (ValueError, KeyError, TypeError):
        message, code = text[:300], ""
    wait = response.headers.get("Retry-After", "")
    retry_after_s = float(wait) if wait.isdecimal() else None
    return ApiError(message, status=response.status, code=code, retry_after_s=retry_after_s)
