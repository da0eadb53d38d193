"""Turnstile: lets a few through in each iteration of the event loop, first come, first served.

Running work gets its share of every iteration, however many wait. So a flood of requests cannot grow the number of
turns in memory: the next one starts when the loop has done a round for those before it.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Turnstile:
    def __init__(self, per_round: int) -> None:
        self._per_round = per_round
        self._passed = 0  # in this round
        self._turning = False  # the next round is scheduled
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def __call__(self) -> bool:
        """Pass, now or in a later round. Return whether it had to wait."""
        loop = asyncio.get_running_loop()
        if not self._turning:
            self._turning = True
            loop.call_soon(self._turn, loop)
        if self._passed < self._per_round and not self._waiting:
            self._passed += 1
            return False
        self._waiting.append(passed := loop.create_future())
        await passed
        return True

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._passed = 0
        while self._waiting and self._passed < self._per_round:
            passed = self._waiting.popleft()
            if not passed.done():  # else the waiting task was cancelled
                passed.set_result(None)
                self._passed += 1
        self._turning = self._passed > 0
        if self._turning:
            loop.call_soon(self._turn, loop)
