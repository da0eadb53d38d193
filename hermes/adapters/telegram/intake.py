"""Updates on their way in, however they came: side by side, in order within a chat, each until it is on disk.

One that is refused for now is offered again, a little later each time, and never skipped; it holds up its own chat
and no other, and where it is a file that takes long, no command and no button. The updates of an album are waited
for, for a moment, and taken together; where updates are asked for, an album is complete when they were once more at
its end. An edit of one of them is an edit of all of it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from loguru import logger
from telegram.error import TelegramError

from hermes.adapters.chat.order import ChatOrder
from hermes.adapters.chat.utf16 import prefix
from hermes.adapters.telegram.addressed import TelegramAddressing, TelegramIdentity
from hermes.adapters.telegram.album import Album, album_name
from hermes.adapters.telegram.api_client import TelegramClient
from hermes.adapters.telegram.failure import explain
from hermes.adapters.telegram.update import has_file, inbound_of, is_urgent, key_of, moved_by
from hermes.domain.backoff import backoff_s
from hermes.domain.errors import (
    AlreadySeenError,
    BusyError,
    OutcomeUnknownError,
    PlatformError,
    RefusedError,
    StoppingError,
    StorageError,
)
from hermes.ports.chat import ChatEdge, Inbound

T = TypeVar("T")

ALBUM_S = 0.8  # from the first of its pictures until the last has come
_MAX_ALBUMS = 100  # that are remembered
_MAX_ASIDE = 200  # characters that Telegram shows
_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 5.0
_SUPERGROUP = "-100"  # how their ids begin; only what is one can have been something else


class TelegramIntake:
    def __init__(
        self,
        wire: TelegramClient,
        edge: ChatEdge,
        me: TelegramIdentity,
        manners: TelegramAddressing,
        *,
        asks: bool = False,
    ) -> None:
        """`asks`: updates come only when they are asked for, and `asked` is told of it."""
        self._asks = asks
        self._wire = wire
        self._edge = edge
        self._me = me
        self._manners = manners
        self._albums: dict[str, Album] = {}  # whose pictures come in now
        self._lately: dict[str, Album] = {}  # that were taken, and may still be edited while they wait
        self._orders: WeakValueDictionary[str, ChatOrder] = WeakValueDictionary()  # one a chat, while it is used

    async def take(self, update: Mapping[str, Any]) -> None:
        """Returns when the update may be confirmed. Calls that are begun in order are served in order."""
        name = album_name(update)
        if (album := self._albums.get(name)) is not None:
            album.add(update)
            await album.done.wait()
            if not album.taken:
                raise PlatformError("the rest of its album was not taken")
        elif name and "message" in update:
            await self._take_album(name, update)
        else:
            async with self._place(update):
                await self._hand_over(update)

    async def _take_album(self, name: str, update: Mapping[str, Any]) -> None:
        album = self._albums[name] = Album(time.monotonic() + ALBUM_S)
        album.add(update)
        try:
            async with self._place(update):
                await asyncio.sleep(album.ready_at - time.monotonic())
                if self._asks:
                    await album.complete.wait()
                del self._albums[name]
                await self._hand_over(update, album)
                album.taken = True
                self._remember(name, album)
        finally:
            self._albums.pop(name, None)
            album.done.set()

    @property
    def ask_at(self) -> float:
        """When to ask at the latest, as an album waits for it."""
        open_ones = (album for album in self._albums.values() if not album.complete.is_set())
        return min((album.ready_at for album in open_ones), default=math.inf)

    def asked(self, at: float) -> None:
        """Whatever had come by then is in our hands."""
        for album in self._albums.values():
            if album.ready_at <= at:
                album.complete.set()

    def _place(self, update: Mapping[str, Any]) -> AbstractAsyncContextManager[None]:
        order = self._orders.setdefault(_chat_of(update), ChatOrder())
        return order.place(urgent=is_urgent(update, self._me), slow=has_file(update))

    def _remember(self, name: str, album: Album) -> None:
        self._lately[name] = album
        if len(self._lately) > _MAX_ALBUMS:
            del self._lately[next(iter(self._lately))]

    async def _hand_over(self, update: Mapping[str, Any], album: Album | None = None) -> None:
        name = f"update {update.get('update_id')}"
        try:
            moved = moved_by(update)
            read = None if moved else await self._read(update, album)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            # Telegram's JSON in a shape we do not know: one such update must not hold up all that follow.
            logger.warning("{} is not understood: {!r}", name, error)
            return
        if moved is not None:
            await self._offer(name, lambda: self._edge.chat_moved(*moved))
            return
        if read is None:
            logger.debug("{} is skipped: {}", name, sorted(update))
            return
        aside = await self._offer(read.id, lambda: self._edge.take(read))
        if query := update.get("callback_query"):
            await _stop_the_spinner(self._wire, str(query["id"]), aside or "")

    async def _read(self, update: Mapping[str, Any], album: Album | None) -> Inbound | None:
        chat = _chat_of(update)
        former = ""
        if chat.startswith(_SUPERGROUP):
            former = await self._offer(chat, lambda: self._edge.former_id(chat)) or ""
        manners = self._manners.in_moved(chat, former)
        if album is not None:
            inbound = album.inbound(self._me, manners)
        elif (earlier := self._lately.get(album_name(update))) is not None:
            earlier.add(update)
            inbound = earlier.edited(key_of(update, self._me), self._me, manners)
        else:
            inbound = inbound_of(update, self._me, manners)
        return replace(inbound, former_chat=former) if inbound is not None and former else inbound

    async def _offer(self, name: str, take: Callable[[], Awaitable[T]]) -> T | None:
        """None: it is known already, or can never be taken."""
        failures = 0
        while True:
            try:
                return await take()
            except AlreadySeenError:
                return None
            except (StoppingError, BusyError, StorageError, OutcomeUnknownError) as error:
                logger.info("{} is not taken yet, and is offered again: {}", name, error)
            except RefusedError as error:
                logger.error("{} is given up, it can never be taken: {}", name, error)
                return None
            failures += 1
            await asyncio.sleep(backoff_s(failures, first_s=_FIRST_WAIT_S, max_s=_LONGEST_WAIT_S))


def _chat_of(update: Mapping[str, Any]) -> str:
    """Whatever is told in one chat; what has none stands alone."""
    query = update.get("callback_query")
    about = query if isinstance(query, dict) else update
    message = about.get("message") or about.get("edited_message")
    chat = message.get("chat") if isinstance(message, dict) else None
    return str(chat.get("id")) if isinstance(chat, dict) else ""


async def _stop_the_spinner(wire: TelegramClient, query: str, aside: str) -> None:
    """A pressed button shows that it is busy until this. The press counts all the same when it fails.

    `aside` is shown to whoever pressed it, and to nobody else.
    """
    try:
        await wire.bot.answer_callback_query(query, prefix(aside, _MAX_ASIDE) or None, show_alert=bool(aside))
    except TelegramError as error:
        logger.debug("a button's press could not be answered: {}", explain(error))
