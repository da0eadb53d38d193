"""Telegram client: python-telegram-bot with separate HTTP clients for sending, long polling and files.

The library's `Application` and `Updater` are not used, because they confirm updates before they are stored. Updates
stay plain JSON, so that one which the library cannot parse does not block the others.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
from telegram import Bot
from telegram.error import NetworkError, TelegramError, TimedOut

from hermes.adapters.telegram.http import CONNECT_S, Http
from hermes.config.secret import Secret

_CONNECTIONS = 64
_PIECE_BYTES = 1 << 18


class TelegramClient:
    def __init__(self, token: Secret, base_url: str, *, answer_within_s: float) -> None:
        self._address = f"{base_url}/bot{token.reveal()}"
        self._polling = Http(base_url, read_s=answer_within_s, connections=1)
        self._saying = Http(base_url, read_s=answer_within_s, connections=_CONNECTIONS)
        self._files = Http(base_url, read_s=answer_within_s, connections=_CONNECTIONS)
        self._answer_within_s = answer_within_s
        self._file_address = f"{base_url}/file/bot{token.reveal()}"
        self.bot = Bot(
            token.reveal(),
            base_url=f"{base_url}/bot",
            base_file_url=f"{base_url}/file/bot",
            request=self._saying,
            get_updates_request=self._polling,
        )

    async def updates(self, offset: int | None, timeout_s: int, kinds: Sequence[str]) -> list[Mapping[str, Any]]:
        """Return waiting updates, oldest first. Confirms all updates before `offset`."""
        query: dict[str, Any] = {"timeout": timeout_s, "allowed_updates": json.dumps(kinds)}
        if offset is not None:
            query["offset"] = offset
        answer: Any = None
        with suppress(KeyError):  # raised by the library for an answer without a result
            answer = await self._polling.post(
                f"{self._address}/getUpdates?{urlencode(query)}", read_timeout=timeout_s + self._answer_within_s
            )
        if not isinstance(answer, list):
            raise TelegramError("Telegram's answer is not a list of updates")
        return answer

    async def file(self, file_id: str) -> AsyncGenerator[bytes, None]:
        """Stream the contents of a file."""
        about: Any = None
        with suppress(KeyError):  # as above
            about = await self._saying.post(f"{self._address}/getFile?{urlencode({'file_id': file_id})}")
        path = about.get("file_path") if isinstance(about, dict) else None
        if not isinstance(path, str) or path.startswith("/"):  # a local Bot API server returns absolute paths
            raise TelegramError("Telegram returned no download path for the file")
        within = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=self._answer_within_s)
        try:
            async with self._files.session.get(f"{self._file_address}/{quote(path)}", timeout=within) as response:
                if response.status != 200:
                    raise NetworkError(f"File ({response.status})")
                async for piece in response.content.iter_chunked(_PIECE_BYTES):
                    yield piece
        except TimeoutError as error:
            raise TimedOut from error
        except (aiohttp.ClientError, OSError) as error:
            raise NetworkError("the file") from error

    async def close(self) -> None:
        await asyncio.gather(self._polling.shutdown(), self._saying.shutdown(), self._files.shutdown())
