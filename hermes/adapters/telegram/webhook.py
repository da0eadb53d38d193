"""Telegram webhook: Telegram posts the updates, and each is confirmed after it is on disk.

Requests without the secret are refused. The server speaks plain HTTP behind a TLS proxy. Received updates and
periodic webhook checks are the health signal.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from loguru import logger
from telegram.error import TelegramError

from hermes.adapters.http.listener import Listener
from hermes.adapters.http.webhook_listener import read_body, webhook_listener
from hermes.adapters.telegram.addressed import TelegramAddressing
from hermes.adapters.telegram.api_client import TelegramClient
from hermes.adapters.telegram.failure import platform_error
from hermes.adapters.telegram.intake import TelegramIntake
from hermes.adapters.telegram.introduction import Introduction
from hermes.adapters.telegram.update import KINDS
from hermes.config.secret import ensure_secret_file
from hermes.domain.errors import PlatformError
from hermes.domain.values import dataclass
from hermes.ports.chat import ChatIntake
from hermes.system import clock

_HEADER = "X-Telegram-Bot-Api-Secret-Token"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    url: str  # public address
    host: str
    port: int
    check_every_s: float = 45.0  # interval of webhook checks


class Webhook:
    def __init__(self, settings: WebhookSettings, secret_file: Path, addressing: TelegramAddressing) -> None:
        self._settings = settings
        self._secret_file = secret_file
        self._addressing = addressing
        self._introduce = Introduction()
        self._arrived_at = 0.0  # time of the last update

    async def run(self, client: TelegramClient, chat_intake: ChatIntake) -> None:
        """Serve until cancelled. Raises PlatformError; can be called again."""
        secret = (await asyncio.to_thread(ensure_secret_file, self._secret_file)).reveal()
        try:
            intake = TelegramIntake(client, chat_intake, await self._introduce(client), self._addressing)
            listener = self._listener(intake, chat_intake, secret)
            try:
                await self._serve(listener, client, chat_intake, secret)
            finally:
                await listener.stop(0)
        except TelegramError as error:
            raise platform_error(error) from error

    async def _serve(self, listener: Listener, client: TelegramClient, chat_intake: ChatIntake, secret: str) -> None:
        host, port = self._settings.host, self._settings.port
        loop = asyncio.get_running_loop()
        try:
            await listener.open(lambda factory: loop.create_server(factory, host, port))
        except OSError as error:
            raise PlatformError(
                f"telegram: the webhook cannot listen on {host} port {port}: {error.strerror}"
            ) from error
        await client.bot.set_webhook(self._settings.url, secret_token=secret, allowed_updates=KINDS)
        while True:
            chat_intake.alive()
            await asyncio.sleep(self._settings.check_every_s)
            await self._check(client, chat_intake)

    async def _check(self, client: TelegramClient, chat_intake: ChatIntake) -> None:
        info = await client.bot.get_webhook_info()
        if info.url != self._settings.url:
            raise PlatformError("another program has changed this bot's webhook; setting it again")
        # Telegram keeps reporting an old error: it counts only while updates are pending.
        failed_at = info.last_error_date.timestamp() if info.last_error_date else 0.0
        stuck = info.pending_update_count > 0 and failed_at > self._arrived_at
        problem = f"Telegram cannot deliver to {info.url}: {info.last_error_message}" if stuck else ""
        chat_intake.trouble("webhook", problem)

    def _listener(self, intake: TelegramIntake, chat_intake: ChatIntake, secret: str) -> Listener:
        async def take(request: web.Request) -> web.Response:
            if not hmac.compare_digest(request.headers.get(_HEADER, "").encode(errors="replace"), secret.encode()):
                return web.Response(status=403)
            chat_intake.alive()
            self._arrived_at = clock.wall()
            update = _update(await read_body(request))
            if update is None:
                return web.Response(status=400)
            await intake.take(update)
            return web.Response()

        return webhook_listener(urlsplit(self._settings.url).path or "/", take, gives_up=True)


def _update(body: bytes) -> dict[str, Any] | None:
    try:
        update = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return update if isinstance(update, dict) and isinstance(update.get("update_id"), int) else None


async def withdraw(client: TelegramClient, secret_file: Path) -> None:
    """Remove the webhook of an earlier configuration, because it blocks long polling."""
    if not await asyncio.to_thread(secret_file.exists):
        return
    try:
        await client.bot.delete_webhook()
    except TelegramError as error:
        raise platform_error(error) from error
    await asyncio.to_thread(secret_file.unlink, missing_ok=True)
    logger.info("telegram: webhook removed, using long polling")
