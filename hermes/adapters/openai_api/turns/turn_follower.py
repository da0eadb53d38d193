"""A turn as the journal tells it, record by record, with its text in between as long as that is live.

Records are the truth and come whole and in order, whoever asks and how often; an event is only the hint to look for
them. Text is for whoever is there when it is said: pieces of a reply whose record has been told already, or whose
beginning was missed, are not passed on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TypeAlias

from hermes.adapters.openai_api.turns.shared_turn import SharedTurn
from hermes.adapters.openai_api.turns.turn_view import turn_of
from hermes.domain.events import (
    CallEnded,
    CallEvent,
    CallProgress,
    Event,
    Notice,
    Steered,
    TextDelta,
    TextReset,
    TurnBegan,
    TurnGaveUp,
)
from hermes.domain.read.views import TurnRecord
from hermes.domain.records import Answered, ModelReplied, TurnFailed, TurnFinished
from hermes.domain.types import Seq, SessionId, TurnId
from hermes.ports.hub import Hub, Subscription

Told: TypeAlias = TurnRecord | str | TextReset | CallProgress | Notice | Steered | TurnGaveUp


class TurnFollower:
    """`feed`: opened before the turn was accepted; without one, text begins with the next reply.

    `answering`: the turn goes on because it was answered just now, and what it says after that is in the feed.
    """

    def __init__(
        self,
        shared: SharedTurn,
        hub: Hub,
        turn: TurnId,
        *,
        quiet_s: float,
        feed: Subscription | None = None,
        answering: bool = False,
    ) -> None:
        self._shared = shared
        self._hub = hub
        self._turn = turn
        self._followed = turn  # the turn that it became part of, if it did
        self._quiet_s = quiet_s
        self._feed = feed if feed is not None else hub.subscribe(turn=turn, late=True)
        self._in_step = feed is not None
        self._untold: deque[Told] = deque()
        self._taken: deque[Event] = deque()  # from the feed, and not looked at yet
        self._seen: set[tuple[SessionId, Seq]] = set()
        self._replies_of: dict[
            str, list[int]
        ] = {}  # a call's id, and which replies use it: a model can repeat itself
        self._replies = 0  # whose records were told
        self._speaking = 0  # the reply that text from the feed belongs to
        self._spoke = False  # there was text since the last call
        self._ended: set[str] = set()  # calls of the reply before
        self._answering = answering
        self._look_first = True

    def close(self) -> None:
        self._feed.close()

    async def step(self) -> Told | None:
        """What comes next; None when nothing came for a while."""
        if not self._untold and self._look_first:
            self._look_first = False
            await self._look()
            self._answering = False
        if self._untold:
            return self._untold.popleft()
        return await self._next()

    # ------------------------------------------------------------ live

    async def _next(self) -> Told | None:
        while True:
            try:
                async with asyncio.timeout(self._quiet_s):
                    event = self._taken.popleft() if self._taken else await anext(self._feed, None)
            except TimeoutError:
                await self._look()
                return self._untold.popleft() if self._untold else None
            if event is None:
                self._subscribe()
                await self._look()
            self._spoke = self._spoke or isinstance(event, TextDelta)
            if event is not None and (live := self._live(event)) is not None:
                return live
            if event is not None and not isinstance(event, TextDelta | TextReset):
                await self._look(event if isinstance(event, TurnGaveUp) else None)
                self._keep_step(event)
            if self._untold:
                return self._untold.popleft()

    def _live(self, event: Event) -> Told | None:
        """What is passed on as it is."""
        match event:
            case TextDelta() if self._is_heard():
                return event.text + self._text_waiting()
            case TextReset() if self._is_heard():
                return event
            case TurnBegan(session=session, turn=turn) if event.attempt > 1 and self._is_heard():
                return TextReset(session=session, turn=turn)
            case CallProgress() | Notice() | Steered():
                return event
            case _:
                return None

    def _is_heard(self) -> bool:
        return self._in_step and self._speaking == self._replies

    def _keep_step(self, event: Event) -> None:
        """What is said after a call has begun or ended is the reply after the one that asked for it."""
        if not isinstance(event, CallEvent) or (place := self._place_of(event.call)) is None:
            return
        if place + 1 != self._speaking:
            self._ended.clear()
        if isinstance(event, CallEnded):
            self._ended.add(event.call)
        self._speaking = place + 1
        self._spoke = False
        self._in_step = True

    def _place_of(self, call: str) -> int | None:
        places = self._replies_of.get(call, [])
        if not self._in_step:
            return places[-1] if places else None
        least = self._speaking if self._spoke or call in self._ended else self._speaking - 1
        return next((place for place in places if place >= least), None)

    def _text_waiting(self) -> str:
        self._taken.extend(self._feed.waiting())
        texts = []
        while self._taken and isinstance(delta := self._taken[0], TextDelta):
            texts.append(delta.text)
            self._taken.popleft()
        return "".join(texts)

    def _subscribe(self) -> None:
        self._feed.close()
        self._feed = self._hub.subscribe(turn=self._followed, late=True)
        self._taken.clear()
        self._in_step = False

    # ------------------------------------------------------------ stored

    async def _look(self, gave_up: TurnGaveUp | None = None) -> None:
        """Take what the journal has and was not told. A turn can also be over without a record of its own."""
        records = await self._shared.records()
        for each in records:
            if (each.session, each.seq) not in self._seen:
                self._seen.add((each.session, each.seq))
                self._untold.append(each)
                self._count(each)
        if records and (followed := turn_of(records, self._turn)) != self._followed:
            self._followed = followed
            self._subscribe()
        if records and isinstance(records[-1].record, TurnFinished | TurnFailed):
            return
        if not self._untold:
            over = gave_up or await self._shared.outcome()
            if isinstance(over, TurnGaveUp):
                self._untold.append(over)

    def _count(self, told: TurnRecord) -> None:
        match told.record:
            case ModelReplied() as reply:
                for call in reply.calls:
                    self._replies_of.setdefault(call.id, []).append(self._replies)
                self._replies += 1
            case TurnFinished():
                self._replies += 1
            case Answered() if self._answering:
                self._speaking = self._replies
            case _:
                pass
