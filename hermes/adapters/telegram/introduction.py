"""Setup calls before the intake starts: read the bot's identity and set its command menu."""

from __future__ import annotations

from loguru import logger
from telegram.error import TelegramError

from hermes.adapters.telegram.addressed import TelegramIdentity
from hermes.adapters.telegram.api_client import TelegramClient
from hermes.adapters.telegram.failure import explain
from hermes.services.commands.registry import COMMANDS


class Introduction:
    def __init__(self) -> None:
        self._has_menu = False

    async def __call__(self, client: TelegramClient) -> TelegramIdentity:
        """Return the bot's identity. Raises TelegramError."""
        identity = await client.bot.get_me()
        await self._show_menu(client)
        return TelegramIdentity(id=identity.id, username=identity.username or "")

    async def _show_menu(self, client: TelegramClient) -> None:
        """Set the commands that Telegram suggests while a person types. Optional: failures are ignored."""
        if self._has_menu:
            return
        try:
            await client.bot.set_my_commands([(command.name, command.help) for command in COMMANDS])
            self._has_menu = True
        except TelegramError as error:
            logger.debug("telegram: could not set the command menu: {}", explain(error))
