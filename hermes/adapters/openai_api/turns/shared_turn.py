"""A stored turn that several clients follow: read once and encoded once for all of them.

Without this, each reader of a long answer would read, decode and encode it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from hermes.domain.events import TurnOutcome
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.read.views import TurnRecord
from hermes.ports.sessions import Sessions

T = TypeVar("T")


class FreshRead(Generic[T]):
    """A read that concurrent callers share. Each gets a result that was read after its call."""

    def __init__(self, read: Callable[[], Awaitable[T]]) -> None:
        self._read = read
        self._running: asyncio.Task[T] | None = None
        self._next: asyncio.Task[T] | None = None

    async def __call__(self) -> T:
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._result())
            return await asyncio.shield(self._running)
        if self._next is None:
            self._next = asyncio.create_task(self._after(self._running))
        return await asyncio.shield(self._next)

    async def _result(self) -> T:
        return await self._read()

    async def _after(self, running: asyncio.Task[T]) -> T:
        await asyncio.wait([running])
        self._running, self._next = self._next, None
        return await self._read()


class SharedTurn:
    """Records of one turn, and the encoded frames of its events."""

    __slots__ = ("__weakref__", "frames", "outcome", "records")

    def __init__(self, sessions: Sessions, session: SessionId, turn: TurnId) -> None:
        self.records: FreshRead[list[TurnRecord]] = FreshRead(lambda: sessions.records(session, turn))
        self.outcome: FreshRead[TurnOutcome | None] = FreshRead(lambda: sessions.outcome(session, turn))
        self.frames: dict[str, bytes] = {}  # by record position; empty if there is no event


class SharedTurns:
    """Turns that have readers. A turn is dropped when its last reader leaves."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._open: WeakValueDictionary[tuple[SessionId, TurnId], SharedTurn] = WeakValueDictionary()

    def of(self, session: SessionId, turn: TurnId) -> SharedTurn:
        shared = self._open.get((session, turn))
        if shared is None:
            shared = self._open[session, turn] = SharedTurn(self._sessions, session, turn)
        return shared
