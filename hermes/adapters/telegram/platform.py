"""Saying things on Telegram: paced, with markup where Telegram takes it, and with errors that say what they mean.

Messages to one chat go one after the other, in the order of the calls. A chat that Telegram wants left alone is
answered with DeliveryError at once: whoever delivers decides what to do until then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar
from weakref import WeakValueDictionary

from telegram import LinkPreviewOptions, ReplyParameters
from telegram.error import BadRequest, TelegramError

from hermes.adapters.chat.outgoing_file import read_file
from hermes.adapters.chat.utf16 import prefix, sound
from hermes.adapters.telegram.api_client import TelegramClient
from hermes.adapters.telegram.failure import delivery_error, refuses_markup, says_so_already
from hermes.adapters.telegram.keyboard import keyboard
from hermes.adapters.telegram.markup import to_html
from hermes.adapters.telegram.parts import LIMIT, split
from hermes.adapters.telegram.rate_limiter import TelegramLimits, TelegramRateLimiter, is_group
from hermes.adapters.telegram.update import NAME
from hermes.adapters.telegram.upload import TOO_LARGE, upload
from hermes.domain.errors import DeliveryError
from hermes.domain.types import OutboxMessage, Place
from hermes.ports.chat import Abilities, Platform

T = TypeVar("T")

_ABILITIES = Abilities(
    edit=True,
    delete=True,
    find=False,
    typing=True,
    buttons=True,
    show_every_s=1.0,
    splits_at=4096,
    files=True,
)
_QUICK = 200  # characters whose markup holds up nobody
_HEARD = "👀"
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)  # it would come and go with each edit


class TelegramPlatform(Platform):
    def __init__(self, wire: Callable[[], Awaitable[TelegramClient]], limits: TelegramLimits) -> None:
        self._wire = wire
        self._pace = TelegramRateLimiter(limits, time.monotonic())
        self._ready: set[str] = set()  # chats that have waited for their turn, and not used it yet
        self._turnstile = asyncio.Lock()  # one after the other, whatever the chat
        self._queues: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # one a chat, while it is used

    @property
    def name(self) -> str:
        return NAME

    @property
    def abilities(self) -> Abilities:
        return _ABILITIES

    def parts(self, text: str) -> Sequence[str]:
        return split(text)

    async def ready(self, place: Place) -> None:
        async with self._queues.setdefault(place.chat, asyncio.Lock()):
            if place.chat not in self._ready:
                await self._turn(place.chat)
                self._ready.add(place.chat)

    async def send(self, outgoing: OutboxMessage, text: str) -> str:
        place = outgoing.place
        chat, thread = _ids(place)
        bot = (await self._wire()).bot
        quoted = _quoted(outgoing)

        async def say(shown: str, parse_mode: str | None) -> str:
            message = await bot.send_message(
                chat,
                shown,
                parse_mode=parse_mode,
                message_thread_id=thread,
                reply_parameters=quoted,
                reply_markup=keyboard(outgoing),
                link_preview_options=_NO_PREVIEW,
            )
            return str(message.message_id)

        return await self._in_turn(place.chat, lambda: _marked_up(text, say))

    async def send_file(self, outgoing: OutboxMessage, path: str, text: str) -> str:
        place = outgoing.place
        chat, thread = _ids(place)
        bot = (await self._wire()).bot
        file = await asyncio.to_thread(read_file, path, if_too_large=TOO_LARGE)
        quoted = _quoted(outgoing)
        return await self._in_turn(
            place.chat, lambda: upload(bot, chat, file, thread=thread, caption=text, quoted=quoted)
        )

    async def edit(self, outgoing: OutboxMessage, message: str, text: str) -> None:
        chat, _ = _ids(outgoing.place)
        bot = (await self._wire()).bot

        async def say(shown: str, parse_mode: str | None) -> None:
            try:
                await bot.edit_message_text(
                    shown,
                    chat,
                    _number(message),
                    parse_mode=parse_mode,
                    reply_markup=keyboard(outgoing),  # left out, they would go
                    link_preview_options=_NO_PREVIEW,
                )
            except BadRequest as error:
                if not says_so_already(error):
                    raise

        await self._in_turn(outgoing.place.chat, lambda: _marked_up(text, say))

    async def delete(self, outgoing: OutboxMessage, message: str) -> None:
        chat, _ = _ids(outgoing.place)
        bot = (await self._wire()).bot
        await self._in_turn(outgoing.place.chat, lambda: bot.delete_message(chat, _number(message)))

    async def find(self, outgoing: OutboxMessage, part: int) -> str | None:  # noqa: ARG002 - as the port has it
        raise DeliveryError("Telegram does not tell a bot what it has said")

    async def show_typing(self, place: Place) -> None:
        """The next one comes soon."""
        if self._may_decorate(place.chat):
            chat, thread = _ids(place)
            bot = (await self._wire()).bot
            async with self._translated(place.chat):
                await bot.send_chat_action(chat, "typing", message_thread_id=thread)

    async def show_waiting(self, place: Place, *, over: bool = False) -> None:
        if place.message and self._may_decorate(place.chat):
            chat, _ = _ids(place)
            bot = (await self._wire()).bot
            async with self._translated(place.chat):
                await bot.set_message_reaction(chat, _number(place.message), None if over else _HEARD)

    def _may_decorate(self, chat: str) -> bool:
        """Only where it keeps nobody waiting; then the turn is taken."""
        now = time.monotonic()
        if self._turnstile.locked() or self._pace.turn_s(now) or self._pace.held_s(chat, now):
            return False
        self._pace.take_turn(now)
        return True

    async def _in_turn(self, chat: str, say: Callable[[], Awaitable[T]]) -> T:
        """Says it when it is this chat's turn."""
        async with self._queues.setdefault(chat, asyncio.Lock()):
            if chat not in self._ready:
                await self._turn(chat)
            self._ready.discard(chat)
            try:
                async with self._translated(chat):
                    return await say()
            finally:
                self._pace.answered(chat, time.monotonic())

    async def _turn(self, chat: str) -> None:
        await asyncio.sleep(self._pace.wait_s(chat, time.monotonic()))
        if (held_s := self._pace.held_s(chat, time.monotonic())) > 0:
            raise DeliveryError(f"Telegram wants us to wait for {held_s:.0f} s more", retry_after_s=held_s)
        async with self._turnstile:
            await asyncio.sleep(self._pace.turn_s(time.monotonic()))
            # Counted from when it really goes out: a late one puts off the next.
            self._pace.take_turn(time.monotonic())

    @asynccontextmanager
    async def _translated(self, chat: str) -> AsyncIterator[None]:
        try:
            yield
        except TelegramError as error:
            problem = delivery_error(error)
            if problem.retry_after_s is not None:
                self._pace.hold(chat, time.monotonic() + problem.retry_after_s)
            raise problem from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # out of the library, about the answer
            raise DeliveryError("Telegram's answer cannot be understood", arrived_perhaps=True) from error


async def _marked_up(text: str, say: Callable[[str, str | None], Awaitable[T]]) -> T:
    """With markup, and as plain text if Telegram does not take that."""
    plain = prefix(sound(text), LIMIT)
    # Parsing takes milliseconds, and many where there are many lists.
    if markup := to_html(plain) if len(plain) < _QUICK else await asyncio.to_thread(to_html, plain):
        try:
            return await say(markup, "HTML")
        except BadRequest as error:
            if not refuses_markup(error):
                raise
    return await say(plain, None)


def _quoted(outgoing: OutboxMessage) -> ReplyParameters | None:
    """What the first of its messages answers, where others may have spoken since."""
    place = outgoing.place
    if not place.message or not is_group(place.chat) or outgoing.sent:
        return None
    return ReplyParameters(_number(place.message), allow_sending_without_reply=True)


def _ids(place: Place) -> tuple[int, int | None]:
    """The chat's, and the topic's."""
    return _number(place.chat), _number(place.thread) if place.thread else None


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise DeliveryError(f"there is nothing on Telegram with the id {text[:40]!r}", gone=True) from None
