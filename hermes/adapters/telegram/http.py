"""HTTP transport of python-telegram-bot over aiohttp, with a quarter of the CPU time of its own client.

A request is sent once: the transport must not repeat a message. Errors never contain the address, because it has the
bot's token.
"""

from __future__ import annotations

import json
from typing import Any

import aiohttp
from telegram.error import NetworkError, TelegramError, TimedOut
from telegram.request import BaseRequest, RequestData

from hermes.system.proxy_environment import proxy_for

CONNECT_S = 10.0
_WRITE_S = 10.0
_POOL_S = 30.0  # wait for a free connection; nothing was sent before
_MAX_BYTES = 32 << 20  # of an answer
_KEEP_S = 5.0  # idle time of a connection; the server may close it at any time


class Http(BaseRequest):
    __slots__ = ("_connections", "_proxy", "_read_s", "_session")

    def __init__(self, base_url: str, *, read_s: float, connections: int) -> None:
        self._read_s = read_s
        self._connections = connections
        self._proxy = proxy_for(base_url)
        self._session: aiohttp.ClientSession | None = None  # created on the event loop that uses it

    @property
    def read_timeout(self) -> float:
        return self._read_s

    @property
    def session(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections, keepalive_timeout=_KEEP_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": self.USER_AGENT},
                proxy=self._proxy,
            )
        return self._session

    async def initialize(self) -> None:
        """Do nothing: the session is created on first use."""

    async def shutdown(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def do_request(  # noqa: PLR0917 - signature of the library
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: Any = BaseRequest.DEFAULT_NONE,
        write_timeout: Any = BaseRequest.DEFAULT_NONE,
        connect_timeout: Any = BaseRequest.DEFAULT_NONE,  # noqa: ARG002
        pool_timeout: Any = BaseRequest.DEFAULT_NONE,  # noqa: ARG002
    ) -> tuple[int, bytes]:
        read_s = _seconds(read_timeout, self._read_s)
        within = aiohttp.ClientTimeout(
            total=_POOL_S + CONNECT_S + _seconds(write_timeout, _WRITE_S) + read_s,
            connect=_POOL_S,
            sock_connect=CONNECT_S,
            sock_read=read_s,
        )
        try:
            async with self.session.request(
                method, url, data=_body(request_data), timeout=within, allow_redirects=False
            ) as response:
                return response.status, await _read(response)
        except TimeoutError as error:
            raise TimedOut from error
        except (aiohttp.ClientError, OSError) as error:
            raise NetworkError(type(error).__name__) from error

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        """Parse JSON. The library's version would log the whole answer if it is invalid."""
        try:
            answer = json.loads(payload)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise TelegramError("the answer is not JSON, so not from the Bot API")
        return answer


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """Read an answer of limited size. A server that is not the Bot API could fill the memory."""
    pieces, size = [], 0
    async for piece in response.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > _MAX_BYTES:
            raise NetworkError("the answer is too large")
    return b"".join(pieces)


def _body(request_data: RequestData | None) -> aiohttp.FormData | dict[str, str] | None:
    if request_data is None:
        return None
    if not request_data.contains_files:
        return request_data.json_parameters or None
    form = aiohttp.FormData(request_data.json_parameters, quote_fields=False)  # Telegram would show quoted names
    for name, (filename, content, media_type) in request_data.multipart_data.items():
        shown = "".join(each if each.isprintable() else "_" for each in filename)
        form.add_field(name, content, filename=shown, content_type=media_type)
    return form


def _seconds(wanted: Any, default_s: float) -> float:
    """Convert a timeout. The library's default marker is not a number."""
    return float(wanted) if isinstance(wanted, int | float) else default_s
