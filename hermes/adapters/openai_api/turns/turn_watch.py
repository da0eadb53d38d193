"""Watch of an accepted turn: its text, its events, and its stored outcome.

Live events are fast but not reliable: a feed can lag, a duplicate request comes late, a turn can start over. The
journal is read whenever an event may have been missed, and always after subscribing, never before.
"""

from __future__ import annotations

from typing import TypeAlias

from hermes.adapters.openai_api.turns.feed_reader import FeedReader
from hermes.adapters.openai_api.turns.pending import asked_in
from hermes.adapters.openai_api.turns.stream_cursor import StreamCursor
from hermes.adapters.openai_api.turns.turn_event import Shown
from hermes.domain.events import (
    CallAnswered,
    CallAsked,
    CallBegan,
    CallEnded,
    CallProgress,
    Notice,
    ReasoningDelta,
    SessionMoved,
    Steered,
    TextDelta,
    TextReset,
    TurnAnswered,
    TurnBegan,
    TurnGaveUp,
    TurnOutcome,
)
from hermes.domain.turn.submission import Handling, Receipt
from hermes.ports.hub import Hub, Subscription
from hermes.ports.sessions import Sessions

Step: TypeAlias = str | Shown | ReasoningDelta | TurnOutcome | None

_WAITING = (Handling.QUEUED, Handling.STEERING)


class TurnWatch:
    """Watches one turn. Text is returned only if it follows the text before. `feed` was opened before the submit."""

    def __init__(self, sessions: Sessions, hub: Hub, receipt: Receipt, feed: Subscription, *, quiet_s: float) -> None:
        self.spoken = StreamCursor()
        self._sessions = sessions
        self._hub = hub
        self._receipt = receipt
        self._turn = receipt.into or receipt.turn
        self._feed = FeedReader(feed)
        self._quiet_s = quiet_s
        self._asked: set[str] = set()  # calls whose question was returned
        self._ask_journal = receipt.duplicate or receipt.handling in _WAITING
        if receipt.duplicate:  # the feed is of a turn that does not exist
            self._resubscribe()
        elif receipt.into is not None:  # that turn continues, without new text so far
            self._subscribe()

    async def outcome(self) -> TurnOutcome | CallAsked:
        """Wait for the outcome, or for a question to a person."""
        while True:
            step = await self.step()
            if isinstance(step, TurnAnswered | TurnGaveUp | CallAsked):
                return step

    async def step(self) -> Step:
        """Return the next text, event or outcome; None if nothing came within `quiet_s`."""
        if self._ask_journal:
            self._ask_journal = False
            if stored := await self._stored():
                return stored
        try:
            return await self._next()
        except TimeoutError:
            return await self._stored()

    def close(self) -> None:
        self._feed.close()

    async def _next(self) -> Step:
        while (event := await self._feed.next_event(self._quiet_s)) is not None:
            match event:
                case TurnAnswered() | TurnGaveUp():
                    return event
                case _ if self._feed.lagged:
                    break
                case TextDelta():
                    if text := self.spoken.hear(event.text + self._feed.waiting_text()):
                        return text
                case TurnBegan():
                    self.spoken.again()
                case TextReset():
                    self.spoken.again()
                    return event
                case CallBegan() | CallEnded() | CallAnswered():
                    self.spoken.next_reply()
                    self._asked.discard(event.call)  # a later model call may reuse the id
                    return event
                case CallAsked():
                    self.spoken.next_reply()
                    self._asked.add(event.call)
                    return event
                case CallProgress() | Notice() | SessionMoved() | Steered() | ReasoningDelta():
                    return event
        self._resubscribe()
        return await self._stored()

    def _resubscribe(self) -> None:
        self._subscribe()
        self.spoken.miss()

    def _subscribe(self) -> None:
        self._feed.close()
        self._feed = FeedReader(self._hub.subscribe(turn=self._turn))

    async def _stored(self) -> TurnOutcome | CallAsked | None:
        outcome = await self._sessions.outcome(self._receipt.session, self._receipt.turn)
        return await self._new_question() if outcome is None else outcome

    async def _new_question(self) -> CallAsked | None:
        """Return a question that was not returned yet, also of another turn that comes first."""
        asked = asked_in((await self._sessions.view(self._receipt.session)).session)
        if asked is None or asked.call in self._asked:
            return None
        self._asked.add(asked.call)
        return asked
