"""Waiting for an accepted turn: its text while it comes, what it does meanwhile, and its outcome for certain.

Live events are quick but not the truth: a feed can lag, a duplicate comes late to its turn, a turn can be begun
anew. The journal is asked whenever an event may have been missed, and always after subscribing, never before.
Text that has already arrived is taken in one piece: a write costs more than the words in it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TypeAlias

from hermes.adapters.openai_api.turns.pending import asked_in
from hermes.adapters.openai_api.turns.stream_cursor import StreamCursor
from hermes.adapters.openai_api.turns.turn_event import Shown
from hermes.domain.events import (
    CallAnswered,
    CallAsked,
    CallBegan,
    CallEnded,
    CallProgress,
    Event,
    Notice,
    SessionMoved,
    Steered,
    TextDelta,
    TextReset,
    TurnAnswered,
    TurnBegan,
    TurnGaveUp,
    TurnOutcome,
)
from hermes.domain.submission import Receipt
from hermes.domain.types import Handling
from hermes.ports.hub import Hub, Subscription
from hermes.ports.sessions import Sessions

Step: TypeAlias = str | Shown | TurnOutcome | None

_BEHIND_OTHERS = (Handling.QUEUED, Handling.STEERING)


class TurnWatch:
    """Text is passed on while each piece is known to follow the one before. `feed` was opened before the submit."""

    def __init__(self, sessions: Sessions, hub: Hub, receipt: Receipt, feed: Subscription, *, quiet_s: float) -> None:
        self.spoken = StreamCursor()
        self._sessions = sessions
        self._hub = hub
        self._receipt = receipt
        self._turn = receipt.into or receipt.turn
        self._feed = feed
        self._quiet_s = quiet_s
        self._taken: deque[Event] = deque()  # from the feed, and not looked at yet
        self._asked: set[str] = set()  # calls whose question was told
        self._ask_journal = receipt.duplicate or receipt.handling in _BEHIND_OTHERS
        if receipt.duplicate:  # the feed is of a turn that does not exist
            self._follow_from_here()
        elif receipt.into is not None:  # what goes on is that turn, and it has said nothing since
            self._subscribe()

    async def outcome(self) -> TurnOutcome | CallAsked:
        """The end, or what it waits for."""
        while True:
            step = await self.step()
            if isinstance(step, TurnAnswered | TurnGaveUp | CallAsked):
                return step

    async def step(self) -> Step:
        """The next piece of text, the next event, or the outcome; None when nothing came for a while."""
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
                case TextDelta():
                    if text := self.spoken.hear(event.text + self._text_waiting()):
                        return text
                case TurnBegan() | TextReset():
                    self.spoken.again()
                case CallBegan() | CallEnded() | CallAnswered():
                    self.spoken.next_reply()
                    self._asked.discard(event.call)  # another reply may use its id again
                    return event
                case CallAsked():
                    self.spoken.next_reply()
                    self._asked.add(event.call)
                    return event
                case CallProgress() | Notice() | SessionMoved() | Steered():
                    return event
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
        self._subscribe()
        self.spoken.miss()

    def _subscribe(self) -> None:
        self._feed.close()
        self._feed = self._hub.subscribe(turn=self._turn)

    async def _stored(self) -> TurnOutcome | CallAsked | None:
        outcome = await self._sessions.outcome(self._receipt.session, self._receipt.turn)
        return await self._untold_question() if outcome is None else outcome

    async def _untold_question(self) -> CallAsked | None:
        """Also another turn's, if that has to be answered first."""
        asked = asked_in((await self._sessions.view(self._receipt.session)).session)
        if asked is None or asked.call in self._asked:
            return None
        self._asked.add(asked.call)
        return asked
