"""python-telegram-bot's HTTP machinery: one client for what is said, one for the long poll.

Its `Application` and `Updater` are not used, because they confirm updates before anybody has stored them. Updates are
taken as the plain JSON they are, so that one the library cannot read cannot hold up the others.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from telegram import Bot
from telegram.error import TelegramError
from telegram.request import HTTPXRequest

from hermes.secret import Secret

_CONNECT_S = 10.0
_WRITE_S = 10.0
_POOL_S = 30.0  # to get a connection; nothing was sent before that
_CONNECTIONS = 64


class Wire:
    def __init__(self, token: Secret, base_url: str, *, answer_within_s: float) -> None:
        context = ssl.create_default_context()
        self._address = f"{base_url}/bot{token.reveal()}"
        self._polling = _client(context, answer_within_s, 1)
        self._saying = _client(context, answer_within_s, _CONNECTIONS)
        self._answer_within_s = answer_within_s
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

    async def close(self) -> None:
        await asyncio.gather(self._polling.shutdown(), self._saying.shutdown())


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
