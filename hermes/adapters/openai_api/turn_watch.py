"""Waiting for an accepted turn: its text while it comes, and its outcome for certain.

Live events are quick but not the truth: a feed can lag, a duplicate comes late to its turn, a turn can be begun
anew. The journal is asked whenever an event may have been missed, and always after subscribing, never before.
"""

from __future__ import annotations

import asyncio
from typing import TypeAlias

from hermes.events import TextDelta, TurnAnswered, TurnBegan, TurnGaveUp, TurnOutcome
from hermes.ports import Hub, Receipt, Sessions, Subscription

Step: TypeAlias = TextDelta | TurnOutcome | None


class TurnWatch:
    """Deltas are passed on as long as each is known to follow the one before. `feed` was opened before the submit."""

    def __init__(self, sessions: Sessions, hub: Hub, receipt: Receipt, feed: Subscription, *, quiet_s: float) -> None:
        self._sessions = sessions
        self._hub = hub
        self._receipt = receipt
        self._feed = feed
        self._quiet_s = quiet_s
        self._in_step = True
        self._spoke = False
        self._ask_journal = receipt.duplicate
        if receipt.duplicate:  # the feed is of a turn that does not exist
            self._follow_from_here()

    async def outcome(self) -> TurnOutcome:
        self._in_step = False
        while True:
            step = await self.step()
            if isinstance(step, TurnAnswered | TurnGaveUp):
                return step

    async def step(self) -> Step:
        """The next piece of text, or the outcome; None when neither came for a while."""
        if self._ask_journal:
            self._ask_journal = False
            if stored := await self._stored():
                return stored
        try:
            async with asyncio.timeout(self._quiet_s):
                return await self._next()
        except TimeoutError:
            return await self._stored()

    def close(self) -> None:
        self._feed.close()

    async def _next(self) -> Step:
        async for event in self._feed:
            match event:
                case TurnAnswered() | TurnGaveUp():
                    return event
                case _ if self._feed.lagged:
                    break
                case TurnBegan() if self._spoke:
                    self._in_step = False
                case TextDelta() if self._in_step:
                    self._spoke = True
                    return event
        self._follow_from_here()
        return await self._stored()

    def _follow_from_here(self) -> None:
        self._feed.close()
        self._feed = self._hub.subscribe(turn=self._receipt.turn)
        self._in_step = False

    async def _stored(self) -> TurnOutcome | None:
        return await self._sessions.outcome(self._receipt.session, self._receipt.turn)
