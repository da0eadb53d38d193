"""Telegram adapter: long poll or webhook for inbound updates, and the platform for outbound messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from telegram.error import TelegramError

from hermes.adapters.telegram.addressed import TelegramAddressing
from hermes.adapters.telegram.api_client import TelegramClient
from hermes.adapters.telegram.failure import why_not_fetched
from hermes.adapters.telegram.platform import TelegramPlatform
from hermes.adapters.telegram.poll import Poll
from hermes.adapters.telegram.rate_limiter import TelegramLimits
from hermes.adapters.telegram.webhook import Webhook, WebhookSettings, withdraw
from hermes.config.secret import Secret
from hermes.domain.errors import PlatformError
from hermes.ports.chat import Attachment, ChatAdapter, ChatIntake, FileSource, Platform

BASE_URL = "https://api.telegram.org"
_POLL_S = 30
_ANSWER_WITHIN_S = 20.0


class TelegramAdapter(ChatAdapter, FileSource):
    def __init__(
        self,
        token: Secret,
        *,
        base_url: str = "",
        addressing: TelegramAddressing | None = None,
        limits: TelegramLimits | None = None,
        poll_s: int = _POLL_S,
        answer_within_s: float = _ANSWER_WITHIN_S,
        webhook: WebhookSettings | None = None,
        secret_file: Path | None = None,
    ) -> None:
        """`secret_file` holds the webhook's secret. It exists as long as our webhook may be set at Telegram."""
        self._token = token
        self._base_url = base_url.rstrip("/") or BASE_URL
        self._answer_within_s = answer_within_s
        self._poll = Poll(addressing or TelegramAddressing(), timeout_s=poll_s)
        self._secret_file = secret_file
        self._webhook: Webhook | None = None
        if webhook is not None and secret_file is not None:
            self._webhook = Webhook(webhook, secret_file, addressing or TelegramAddressing())
        self._platform = TelegramPlatform(self._connected, limits or TelegramLimits())
        self._making = asyncio.Lock()
        self._client: TelegramClient | None = None

    @property
    def platform(self) -> Platform:
        return self._platform

    async def run(self, chat_intake: ChatIntake) -> None:
        client = await self._connected()
        if self._webhook is not None:
            await self._webhook.run(client, chat_intake)
            return
        if self._secret_file is not None:
            await withdraw(client, self._secret_file)
        await self._poll.run(client, chat_intake)

    async def fetch(self, attachment: Attachment) -> AsyncGenerator[bytes, None]:
        """Download a file that a person sent. Raises PlatformError."""
        client = await self._connected()
        try:
            async with aclosing(client.file(attachment.file_id)) as pieces:
                async for piece in pieces:
                    yield piece
        except TelegramError as error:
            raise PlatformError(why_not_fetched(error)) from error

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def _connected(self) -> TelegramClient:
        async with self._making:
            if self._client is None:
                # In a thread: certificates are read from disk.
                self._client = await asyncio.to_thread(
                    TelegramClient, self._token, self._base_url, answer_within_s=self._answer_within_s
                )
            return self._client
