"""The webhook: Telegram brings the updates itself, and hears that one arrived only after it is on disk.

Whoever does not know the secret is turned away. Nothing here speaks HTTPS: something in front of it does. That it
works is proved by updates and by what Telegram says of it when asked now and then.
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
from hermes.ports.chat import ChatEdge
from hermes.system import clock

_HEADER = "X-Telegram-Bot-Api-Secret-Token"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    url: str  # where Telegram finds it
    host: str
    port: int
    look_every_s: float = 45.0  # at what Telegram says of it


class Webhook:
    def __init__(self, settings: WebhookSettings, secret_file: Path, manners: TelegramAddressing) -> None:
        self._settings = settings
        self._secret_file = secret_file
        self._manners = manners
        self._introduce = Introduction()
        self._arrived_at = 0.0  # when Telegram brought something last

    async def run(self, wire: TelegramClient, edge: ChatEdge) -> None:
        """Until cancelled. Raises PlatformError, and can be run again."""
        secret = (await asyncio.to_thread(ensure_secret_file, self._secret_file)).reveal()
        try:
            intake = TelegramIntake(wire, edge, await self._introduce(wire), self._manners)
            listener = self._listener(intake, edge, secret)
            try:
                await self._serve(listener, wire, edge, secret)
            finally:
                await listener.stop(0)
        except TelegramError as error:
            raise platform_error(error) from error

    async def _serve(self, listener: Listener, wire: TelegramClient, edge: ChatEdge, secret: str) -> None:
        host, port = self._settings.host, self._settings.port
        loop = asyncio.get_running_loop()
        try:
            await listener.open(lambda factory: loop.create_server(factory, host, port))
        except OSError as error:
            raise PlatformError(f"the webhook cannot listen on {host} port {port}: {error.strerror}") from error
        await wire.bot.set_webhook(self._settings.url, secret_token=secret, allowed_updates=KINDS)
        while True:
            edge.alive()
            await asyncio.sleep(self._settings.look_every_s)
            await self._look(wire, edge)

    async def _look(self, wire: TelegramClient, edge: ChatEdge) -> None:
        info = await wire.bot.get_webhook_info()
        if info.url != self._settings.url:
            raise PlatformError("another program has changed this bot's webhook; it is set again")
        # Telegram goes on to tell of an error that is long over: it counts while something waits to be brought.
        failed_at = info.last_error_date.timestamp() if info.last_error_date else 0.0
        stuck = info.pending_update_count > 0 and failed_at > self._arrived_at
        problem = f"Telegram cannot deliver to {info.url}: {info.last_error_message}" if stuck else ""
        edge.trouble("webhook", problem)

    def _listener(self, intake: TelegramIntake, edge: ChatEdge, secret: str) -> Listener:
        async def take(request: web.Request) -> web.Response:
            if not hmac.compare_digest(request.headers.get(_HEADER, "").encode(errors="replace"), secret.encode()):
                return web.Response(status=403)
            edge.alive()
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


async def withdraw(wire: TelegramClient, secret_file: Path) -> None:
    """Take back a webhook that an earlier configuration had set: while there is one, Telegram answers no poll."""
    if not await asyncio.to_thread(secret_file.exists):
        return
    try:
        await wire.bot.delete_webhook()
    except TelegramError as error:
        raise platform_error(error) from error
    await asyncio.to_thread(secret_file.unlink, missing_ok=True)
    logger.info("telegram: the webhook is taken back, messages are asked for again")
