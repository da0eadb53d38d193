"""Intake of Telegram updates: concurrent across chats, in order within a chat, until each is on disk.

A refused update is retried with backoff and never skipped. It delays only its own chat, and a file download delays no
command or button press. The updates of an album are collected for a moment and taken together. With long polling, an
album is complete when one more poll has returned after its end. An edit of one picture is an edit of the whole album.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any
from weakref import WeakValueDictionary

from loguru import logger
from telegram.error import TelegramError

from hermes.adapters.chat.intake_retry import until_stored
from hermes.adapters.chat.order import ChatOrder
from hermes.adapters.chat.utf16 import prefix
from hermes.adapters.telegram.addressed import TelegramAddressing, TelegramIdentity
from hermes.adapters.telegram.album import Album, album_name
from hermes.adapters.telegram.api_client import TelegramClient
from hermes.adapters.telegram.failure import explain
from hermes.adapters.telegram.update import NAME, has_file, inbound_of, is_urgent, key_of, moved_by
from hermes.domain.errors import PlatformError
from hermes.domain.values import replace
from hermes.ports.chat import ChatIntake, Inbound

ALBUM_S = 0.8  # wait for the rest of an album
_MAX_ALBUMS = 100  # kept for edits
_MAX_NOTE = 200  # characters that Telegram shows
_SUPERGROUP = "-100"  # prefix of supergroup ids; only supergroups can have moved


class TelegramIntake:
    def __init__(
        self,
        client: TelegramClient,
        chat_intake: ChatIntake,
        identity: TelegramIdentity,
        addressing: TelegramAddressing,
        *,
        polls: bool = False,
    ) -> None:
        """`polls`: updates come by polling, and the caller reports each poll with `polled`."""
        self._polls = polls
        self._client = client
        self._chat_intake = chat_intake
        self._identity = identity
        self._addressing = addressing
        self._albums: dict[str, Album] = {}  # being collected
        self._recent_albums: dict[str, Album] = {}  # taken; may still be edited while they wait
        self._orders: WeakValueDictionary[str, ChatOrder] = WeakValueDictionary()  # one a chat, while it is used

    async def take(self, update: Mapping[str, Any]) -> None:
        """Take an update and return when it may be confirmed. Concurrent calls keep their order."""
        name = album_name(update)
        if (album := self._albums.get(name)) is not None:
            album.add(update)
            await album.done.wait()
            if not album.taken:
                raise PlatformError("the rest of the album was not stored")
        elif name and "message" in update:
            await self._take_album(name, update)
        else:
            async with self._place(update):
                await self._store_update(update)

    async def _take_album(self, name: str, update: Mapping[str, Any]) -> None:
        album = self._albums[name] = Album(time.monotonic() + ALBUM_S)
        album.add(update)
        try:
            async with self._place(update):
                await asyncio.sleep(album.ready_at - time.monotonic())
                if self._polls:
                    await album.complete.wait()
                del self._albums[name]
                await self._store_update(update, album)
                album.taken = True
                self._remember(name, album)
        finally:
            self._albums.pop(name, None)
            album.done.set()

    @property
    def poll_at(self) -> float:
        """Latest time for the next poll, because an album waits for it."""
        open_ones = (album for album in self._albums.values() if not album.complete.is_set())
        return min((album.ready_at for album in open_ones), default=math.inf)

    def polled(self, at: float) -> None:
        """Note that a poll has returned everything up to this time."""
        for album in self._albums.values():
            if album.ready_at <= at:
                album.complete.set()

    def _place(self, update: Mapping[str, Any]) -> AbstractAsyncContextManager[None]:
        order = self._orders.setdefault(_chat_of(update), ChatOrder())
        return order.place(urgent=is_urgent(update, self._identity), slow=has_file(update))

    def _remember(self, name: str, album: Album) -> None:
        self._recent_albums[name] = album
        if len(self._recent_albums) > _MAX_ALBUMS:
            del self._recent_albums[next(iter(self._recent_albums))]

    async def _store_update(self, update: Mapping[str, Any], album: Album | None = None) -> None:
        name = f"update {update.get('update_id')}"
        try:
            moved = moved_by(update)
            read = None if moved else await self._read(update, album)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            # Telegram sent JSON of an unknown form: skip it, or it would block all later updates.
            logger.warning("telegram: {} skipped, unknown format: {!r}", name, error)
            return
        if moved is not None:
            await until_stored(NAME, name, lambda: self._chat_intake.chat_moved(*moved))
            return
        if read is None:
            logger.debug("{} is skipped: {}", name, sorted(update))
            return
        private_note = await until_stored(NAME, read.id, lambda: self._chat_intake.take(read))
        if query := update.get("callback_query"):
            await _acknowledge_press(self._client, str(query["id"]), private_note or "")

    async def _read(self, update: Mapping[str, Any], album: Album | None) -> Inbound | None:
        chat = _chat_of(update)
        former = ""
        if chat.startswith(_SUPERGROUP):
            former = await until_stored(NAME, chat, lambda: self._chat_intake.former_id(chat)) or ""
        addressing = self._addressing.in_moved(chat, former)
        if album is not None:
            inbound = album.inbound(self._identity, addressing)
        elif (earlier := self._recent_albums.get(album_name(update))) is not None:
            earlier.add(update)
            inbound = earlier.edited(key_of(update, self._identity), self._identity, addressing)
        else:
            inbound = inbound_of(update, self._identity, addressing)
        return replace(inbound, former_chat=former) if inbound is not None and former else inbound


def _chat_of(update: Mapping[str, Any]) -> str:
    """Return the chat of an update; updates without one are independent."""
    query = update.get("callback_query")
    about = query if isinstance(query, dict) else update
    message = about.get("message") or about.get("edited_message")
    chat = message.get("chat") if isinstance(message, dict) else None
    return str(chat.get("id")) if isinstance(chat, dict) else ""


async def _acknowledge_press(client: TelegramClient, query: str, private_note: str) -> None:
    """Acknowledge a button press, so that Telegram hides its spinner. Failures are ignored.

    `private_note` is shown only to the person who pressed it.
    """
    try:
        await client.bot.answer_callback_query(
            query, prefix(private_note, _MAX_NOTE) or None, show_alert=bool(private_note)
        )
    except TelegramError as error:
        logger.debug("telegram: could not acknowledge a button press: {}", explain(error))
