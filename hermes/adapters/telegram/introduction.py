"""Who the bot is, and the menu of commands that people are offered: asked and set before anything is taken in."""

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

    async def __call__(self, wire: TelegramClient) -> TelegramIdentity:
        """Raises TelegramError."""
        me = await wire.bot.get_me()
        await self._show_menu(wire)
        return TelegramIdentity(id=me.id, username=me.username or "")

    async def _show_menu(self, wire: TelegramClient) -> None:
        """The commands, as Telegram offers them while a person types. It works without them, too."""
        if self._has_menu:
            return
        try:
            await wire.bot.set_my_commands([(command.name, command.help) for command in COMMANDS])
            self._has_menu = True
        except TelegramError as error:
            logger.debug("the menu of commands could not be set: {}", explain(error))
