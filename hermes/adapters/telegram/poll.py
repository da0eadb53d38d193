"""The long poll. An update is confirmed by asking for the next one, and that happens only after it is on disk.

Each update is handed over in order; one that is refused for now is offered again, a little later each time, and never
skipped. A crash anywhere means that Telegram sends the unconfirmed ones again, and their ids tell that they are
known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from loguru import logger
from telegram.error import TelegramError

from hermes.adapters.telegram.addressed import Manners, Myself
from hermes.adapters.telegram.trouble import explain, platform_error
from hermes.adapters.telegram.update import KINDS, inbound_of
from hermes.adapters.telegram.wire import Wire
from hermes.commands.registry import COMMANDS
from hermes.errors import (
    AlreadySeenError,
    BusyError,
    OutcomeUnknownError,
    RefusedError,
    StoppingError,
    StorageError,
)
from hermes.ports import ChatEdge, Inbound

_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 5.0


class Poll:
    def __init__(self, manners: Manners, *, timeout_s: int) -> None:
        self._manners = manners
        self._timeout_s = timeout_s
        self._offset: int | None = None  # None: from the oldest that was never confirmed
        self._album = ""  # whose pictures come in now
        self._has_menu = False

    async def run(self, wire: Wire, edge: ChatEdge) -> None:
        """Until cancelled. Raises PlatformError, and can be run again."""
        try:
            me = await wire.bot.get_me()
            myself = Myself(id=me.id, username=me.username or "")
            await self._show_menu(wire)
            while True:
                updates = await wire.updates(self._offset, self._timeout_s, KINDS)
                edge.alive()
                for update in updates:
                    await self._hand_over(update, wire, edge, myself)
                    self._offset = int(update["update_id"]) + 1
        except TelegramError as error:
            raise platform_error(error) from error

    async def _hand_over(self, update: Mapping[str, Any], wire: Wire, edge: ChatEdge, me: Myself) -> None:
        try:
            inbound = inbound_of(update, me, self._manners)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            # Telegram's JSON in a shape we do not know: one such update must not hold up all that follow.
            logger.warning("update {} is not understood: {!r}", update.get("update_id"), error)
            return
        if inbound is None or self._is_told(update):
            logger.debug("update {} is skipped: {}", update["update_id"], sorted(update))
            return
        await self._take(inbound, edge)
        if query := update.get("callback_query"):
            await _stop_the_spinner(wire, str(query["id"]))

    def _is_told(self, update: Mapping[str, Any]) -> bool:
        """Whether it is one more picture of an album without a word of its own: the first one stands for all."""
        message = update.get("message") or {}
        album, self._album = self._album, str(message.get("media_group_id", ""))
        return bool(album and album == self._album and not message.get("caption"))

    async def _show_menu(self, wire: Wire) -> None:
        """The commands, as Telegram offers them while a person types. It works without them, too."""
        if self._has_menu:
            return
        try:
            await wire.bot.set_my_commands([(command.name, command.help) for command in COMMANDS])
            self._has_menu = True
        except TelegramError as error:
            logger.debug("the menu of commands could not be set: {}", explain(error))

    async def _take(self, inbound: Inbound, edge: ChatEdge) -> None:
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                return await edge.take(inbound)
            except AlreadySeenError:
                return None
            except (StoppingError, BusyError, StorageError, OutcomeUnknownError) as error:
                logger.info("{} is not taken yet, and is offered again: {}", inbound.id, error)
            except RefusedError as error:
                logger.error("{} is given up, it can never be taken: {}", inbound.id, error)
                return None
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)


async def _stop_the_spinner(wire: Wire, query: str) -> None:
    """A pressed button shows that it is busy until this. The press counts all the same when it fails."""
    try:
        await wire.bot.answer_callback_query(query)
    except TelegramError as error:
        logger.debug("a button's press could not be answered: {}", explain(error))
