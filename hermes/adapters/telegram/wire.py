"""python-telegram-bot's HTTP machinery: one client for what is said, one for the long poll, one for files.

Its `Application` and `Updater` are not used, because they confirm updates before anybody has stored them. Updates are
taken as the plain JSON they are, so that one the library cannot read cannot hold up the others.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlencode

import httpx
from telegram import Bot
from telegram.error import NetworkError, TelegramError, TimedOut
from telegram.request import HTTPXRequest

from hermes.secret import Secret

_CONNECT_S = 10.0
_WRITE_S = 10.0
_POOL_S = 30.0  # to get a connection; nothing was sent before that
_CONNECTIONS = 64
_PIECE_BYTES = 1 << 18


class Wire:
    def __init__(self, token: Secret, base_url: str, *, answer_within_s: float) -> None:
        context = ssl.create_default_context()
        self._address = f"{base_url}/bot{token.reveal()}"
        self._polling = _client(context, answer_within_s, 1)
        self._saying = _client(context, answer_within_s, _CONNECTIONS)
        self._answer_within_s = answer_within_s
        self._file_address = f"{base_url}/file/bot{token.reveal()}"
        self._files = httpx.AsyncClient(verify=context, timeout=httpx.Timeout(answer_within_s, connect=_CONNECT_S))
        self.bot = Bot(
            token.reveal(),
            base_url=f"{base_url}/bot",
            base_file_url=f"{base_url}/file/bot",
            request=self._saying,
            get_updates_request=self._polling,
        )

    async def updates(self, offset: int | None, timeout_s: int, kinds: Sequence[str]) -> list[Mapping[str, Any]]:
        """Those that wait, oldest first; all before `offset` are confirmed by this."""
        query: dict[str, Any] = {"timeout": timeout_s, "allowed_updates": json.dumps(kinds)}
        if offset is not None:
            query["offset"] = offset
        answer: Any = None
        with suppress(KeyError):  # the library's, for an answer without a result
            answer = await self._polling.post(
                f"{self._address}/getUpdates?{urlencode(query)}", read_timeout=timeout_s + self._answer_within_s
            )
        if not isinstance(answer, list):
            raise TelegramError("the answer is not a list of updates")
        return answer

    async def file(self, file_id: str) -> AsyncGenerator[bytes, None]:
        """What is in a file that somebody sent, piece by piece."""
        about: Any = await self._saying.post(f"{self._address}/getFile?{urlencode({'file_id': file_id})}")
        path = about.get("file_path") if isinstance(about, dict) else None
        if not isinstance(path, str) or path.startswith("/"):  # a server of one's own, in its local mode
            raise TelegramError("it does not say where the file can be fetched")
        try:
            async with self._files.stream("GET", f"{self._file_address}/{quote(path)}") as response:
                if response.status_code != 200:
                    raise NetworkError(f"File ({response.status_code})")
                async for piece in response.aiter_bytes(_PIECE_BYTES):
                    yield piece
        except httpx.TimeoutException as error:
            raise TimedOut from error
        except httpx.HTTPError as error:
            raise NetworkError("the file") from error

    async def close(self) -> None:
        await asyncio.gather(self._polling.shutdown(), self._saying.shutdown(), self._files.aclose())


class _Client(HTTPXRequest):
    __slots__ = ()

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        """The library would log the whole answer when it is no JSON."""
        try:
            answer = json.loads(payload)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise TelegramError("the answer is not from the Bot API (no JSON)")
        return answer


def _client(context: ssl.SSLContext, read_s: float, connections: int) -> HTTPXRequest:
    return _Client(
        connection_pool_size=connections,
        read_timeout=read_s,
        write_timeout=_WRITE_S,
        connect_timeout=_CONNECT_S,
        pool_timeout=_POOL_S,
        httpx_kwargs={"verify": context},
    )
