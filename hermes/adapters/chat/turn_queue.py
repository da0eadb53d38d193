"""Queue of outbound calls per chat: one at a time, in the order of the calls, each after its rate limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary


class TurnQueue:
    def __init__(self, answered: Callable[[str], None]) -> None:
        """`answered` is called after each call in a chat, successful or not."""
        self._answered = answered
        self._ready: set[str] = set()  # chats that have waited for the limits and not sent yet
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # one per chat, while in use

    def lock(self, chat: str) -> asyncio.Lock:
        return self._locks.setdefault(chat, asyncio.Lock())

    async def ready(self, chat: str, wait: Callable[[], Awaitable[None]]) -> None:
        """Wait for the rate limits ahead of the next call in this chat."""
        async with self.lock(chat):
            if chat not in self._ready:
                await wait()
                self._ready.add(chat)

    @asynccontextmanager
    async def turn(self, chat: str, wait: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
        """Wait for the rate limits unless `ready` has, then hold the chat for one call."""
        async with self.lock(chat):
            if chat not in self._ready:
                await wait()
            self._ready.discard(chat)
            try:
                yield
            finally:
                self._answered(chat)
