"""Outbound Telegram messages: rate limited, with markup where Telegram accepts it.

Messages to one chat are sent in the order of the calls. A chat under a rate limit of Telegram raises DeliveryError
immediately; the caller decides when to retry.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from telegram import LinkPreviewOptions, ReplyParameters
from telegram.error import BadRequest, TelegramError

from hermes.adapters.chat.outgoing_file import read_file
from hermes.adapters.chat.turn_queue import TurnQueue
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
from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.source import Place
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
_QUICK = 200  # characters; longer markup is converted in a thread
_HEARD = "👀"
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)  # a preview would change with each edit


class TelegramPlatform(Platform):
    def __init__(self, client: Callable[[], Awaitable[TelegramClient]], limits: TelegramLimits) -> None:
        self._client = client
        self._pace = TelegramRateLimiter(limits, time.monotonic())
        self._queue = TurnQueue(lambda chat: self._pace.answered(chat, time.monotonic()))
        self._turnstile = asyncio.Lock()  # serialises sends to all chats

    @property
    def name(self) -> str:
        return NAME

    @property
    def abilities(self) -> Abilities:
        return _ABILITIES

    def parts(self, text: str) -> Sequence[str]:
        return split(text)

    async def ready(self, place: Place) -> None:
        await self._queue.ready(place.chat, lambda: self._wait(place.chat))

    async def send(self, outgoing: OutboxMessage, text: str) -> str:
        place = outgoing.place
        chat, thread = _ids(place)
        bot = (await self._client()).bot
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
        bot = (await self._client()).bot
        file = await asyncio.to_thread(read_file, path, if_too_large=TOO_LARGE)
        quoted = _quoted(outgoing)
        return await self._in_turn(
            place.chat, lambda: upload(bot, chat, file, thread=thread, caption=text, quoted=quoted)
        )

    async def edit(self, outgoing: OutboxMessage, message: str, text: str) -> None:
        chat, _ = _ids(outgoing.place)
        bot = (await self._client()).bot

        async def say(shown: str, parse_mode: str | None) -> None:
            try:
                await bot.edit_message_text(
                    shown,
                    chat,
                    _number(message),
                    parse_mode=parse_mode,
                    reply_markup=keyboard(outgoing),  # without it the buttons would disappear
                    link_preview_options=_NO_PREVIEW,
                )
            except BadRequest as error:
                if not says_so_already(error):
                    raise

        await self._in_turn(outgoing.place.chat, lambda: _marked_up(text, say))

    async def delete(self, outgoing: OutboxMessage, message: str) -> None:
        chat, _ = _ids(outgoing.place)
        bot = (await self._client()).bot
        await self._in_turn(outgoing.place.chat, lambda: bot.delete_message(chat, _number(message)))

    async def find(self, outgoing: OutboxMessage, part: int) -> str | None:  # noqa: ARG002 - signature of the port
        raise DeliveryError("Telegram cannot look up sent messages")

    async def show_typing(self, place: Place) -> None:
        """Show the typing indicator once. Failures are ignored."""
        if self._may_decorate(place.chat):
            chat, thread = _ids(place)
            bot = (await self._client()).bot
            async with self._translated(place.chat):
                await bot.send_chat_action(chat, "typing", message_thread_id=thread)

    async def show_waiting(self, place: Place, *, over: bool = False) -> None:
        if place.message and self._may_decorate(place.chat):
            chat, _ = _ids(place)
            bot = (await self._client()).bot
            async with self._translated(place.chat):
                await bot.set_message_reaction(chat, _number(place.message), None if over else _HEARD)

    def _may_decorate(self, chat: str) -> bool:
        """Take a slot of the rate limit only if no message waits for one."""
        now = time.monotonic()
        if self._turnstile.locked() or self._pace.turn_s(now) or self._pace.held_s(chat, now):
            return False
        self._pace.take_turn(now)
        return True

    async def _in_turn(self, chat: str, say: Callable[[], Awaitable[T]]) -> T:
        """Run a call when the rate limits allow it."""
        async with self._queue.turn(chat, lambda: self._wait(chat)), self._translated(chat):
            return await say()

    async def _wait(self, chat: str) -> None:
        await asyncio.sleep(self._pace.wait_s(chat, time.monotonic()))
        if (held_s := self._pace.held_s(chat, time.monotonic())) > 0:
            raise DeliveryError(f"Telegram's rate limit is reached; retry in {held_s:.0f} s", retry_after_s=held_s)
        async with self._turnstile:
            await asyncio.sleep(self._pace.turn_s(time.monotonic()))
            # Counted from the actual send time: a late one delays the next.
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
        except (
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
        ) as error:  # raised by the library for an invalid answer
            raise DeliveryError("Telegram returned an invalid answer", arrived_perhaps=True) from error


async def _marked_up(text: str, say: Callable[[str, str | None], Awaitable[T]]) -> T:
    """Send with markup, or as plain text if Telegram rejects it."""
    plain = prefix(sound(text), LIMIT)
    # Parsing takes milliseconds, more with many lists.
    if markup := to_html(plain) if len(plain) < _QUICK else await asyncio.to_thread(to_html, plain):
        try:
            return await say(markup, "HTML")
        except BadRequest as error:
            if not refuses_markup(error):
                raise
    return await say(plain, None)


def _quoted(outgoing: OutboxMessage) -> ReplyParameters | None:
    """Quote the message that the first part answers, if others may have written since."""
    place = outgoing.place
    if not place.message or not is_group(place.chat) or outgoing.sent:
        return None
    return ReplyParameters(_number(place.message), allow_sending_without_reply=True)


def _ids(place: Place) -> tuple[int, int | None]:
    """Return the chat id and the topic id."""
    return _number(place.chat), _number(place.thread) if place.thread else None


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise DeliveryError(f"{text[:40]!r} is not a Telegram id", gone=True) from None
