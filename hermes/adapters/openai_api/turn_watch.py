"""Waiting for an accepted turn: its text while it comes, and its outcome for certain.

Live events are quick but not the truth: a feed can lag, a duplicate comes late to its turn, a turn can be begun
anew. The journal is asked whenever an event may have been missed, and always after subscribing, never before.
Text that has already arrived is taken in one piece: a write costs more than the words in it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TypeAlias

from hermes.events import Event, TextDelta, TurnAnswered, TurnBegan, TurnGaveUp, TurnOutcome
from hermes.ports import Hub, Receipt, Sessions, Subscription

Step: TypeAlias = str | TurnOutcome | None


class TurnWatch:
    """Deltas are passed on as long as each is known to follow the one before. `feed` was opened before the submit."""

    def __init__(self, sessions: Sessions, hub: Hub, receipt: Receipt, feed: Subscription, *, quiet_s: float) -> None:
        self._sessions = sessions
        self._hub = hub
        self._receipt = receipt
        self._feed = feed
        self._quiet_s = quiet_s
        self._taken: deque[Event] = deque()  # from the feed, and not looked at yet
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
        while (event := await self._event()) is not None:
            match event:
                case TurnAnswered() | TurnGaveUp():
                    return event
                case _ if self._feed.lagged:
                    break
                case TurnBegan() if self._spoke:
                    self._in_step = False
                case TextDelta() if self._in_step:
                    self._spoke = True
                    return event.text + self._text_waiting()
        self._follow_from_here()
        return await self._stored()

    async def _event(self) -> Event | None:
        return self._taken.popleft() if self._taken else await anext(self._feed, None)

    def _text_waiting(self) -> str:
        self._taken.extend(self._feed.waiting())
        texts = []
        while self._taken and isinstance(delta := self._taken[0], TextDelta):
            texts.append(delta.text)
            self._taken.popleft()
        return "".join(texts)

    def _follow_from_here(self) -> None:
        self._feed.close()
        self._feed = self._hub.subscribe(turn=self._receipt.turn)
        self._in_step = False

    async def _stored(self) -> TurnOutcome | None:
        return await self._sessions.outcome(self._receipt.session, self._receipt.turn)
