"""Resizable semaphore for model calls."""

from __future__ import annotations

import asyncio
from collections import deque


class Slots:
    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.taken = 0

    @property
    def full(self) -> bool:
        return self.taken >= self._most

    async def take(self) -> None:
        """Wait for a slot."""
        while self.taken >= self._most:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                self._wake()  # pass on a slot that may have been assigned
                raise
        self.taken += 1

    def give_back(self) -> None:
        self.taken -= 1
        self._wake()

    def resize(self, most: int) -> None:
        self._most = most
        self._wake()

    def _wake(self) -> None:
        free = self._most - self.taken
        while free > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1
