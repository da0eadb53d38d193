"""The connection to Telegram, both ways: the poll that takes in, and the platform that says."""

from __future__ import annotations

import asyncio

from hermes.adapters.telegram.addressed import Manners
from hermes.adapters.telegram.pace import Limits
from hermes.adapters.telegram.platform import TelegramPlatform
from hermes.adapters.telegram.poll import Poll
from hermes.adapters.telegram.wire import Wire
from hermes.ports import ChatEdge, Platform
from hermes.secret import Secret

BASE_URL = "https://api.telegram.org"
_POLL_S = 30
_ANSWER_WITHIN_S = 20.0


class TelegramAdapter:
    def __init__(
        self,
        token: Secret,
        *,
        base_url: str = "",
        manners: Manners | None = None,
        limits: Limits | None = None,
        poll_s: int = _POLL_S,
        answer_within_s: float = _ANSWER_WITHIN_S,
    ) -> None:
        self._token = token
        self._base_url = base_url.rstrip("/") or BASE_URL
        self._answer_within_s = answer_within_s
        self._poll = Poll(manners or Manners(), timeout_s=poll_s)
        self._platform = TelegramPlatform(self._connected, limits or Limits())
        self._making = asyncio.Lock()
        self._wire: Wire | None = None

    @property
    def platform(self) -> Platform:
        return self._platform

    async def run(self, edge: ChatEdge) -> None:
        await self._poll.run(await self._connected(), edge)

    async def close(self) -> None:
        if self._wire is not None:
            await self._wire.close()

    async def _connected(self) -> Wire:
        async with self._making:
            if self._wire is None:
                # In a thread: certificates are read from disk.
                self._wire = await asyncio.to_thread(
                    Wire, self._token, self._base_url, answer_within_s=self._answer_within_s
                )
            return self._wire
