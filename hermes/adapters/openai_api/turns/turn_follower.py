"""Records of a turn in order, with its live text in between.

Records are complete and in order for every reader; an event is only a hint to read them. Text is live only: pieces of
a reply whose record was returned already are dropped. A reader that joins in the middle of a reply gets a TextReset,
then the reply's text so far.
"""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

from hermes.adapters.openai_api.turns.feed_reader import FeedReader
from hermes.adapters.openai_api.turns.shared_turn import SharedTurn
from hermes.adapters.openai_api.turns.turn_view import said, turn_of
from hermes.domain.events import (
    CallEnded,
    CallEvent,
    CallProgress,
    Event,
    Notice,
    ReasoningDelta,
    Steered,
    TextDelta,
    TextReset,
    TurnBegan,
    TurnGaveUp,
)
from hermes.domain.ids import Seq, SessionId, TurnId
from hermes.domain.read.views import TurnRecord
from hermes.domain.records import Answered, ModelReplied, TurnFailed, TurnFinished
from hermes.ports.hub import Hub, Subscription

TurnUpdate: TypeAlias = TurnRecord | str | TextReset | CallProgress | Notice | Steered | TurnGaveUp


class TurnFollower:
    """Follows one turn. `feed` was opened before the turn was accepted; without it, the reader joins later.

    `answering`: the turn continues because it was answered just now, and its further text is in the feed.
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
        self._followed = turn  # the turn that it became part of, if any
        self._quiet_s = quiet_s
        self._feed = FeedReader(feed if feed is not None else hub.subscribe(turn=turn, late=True))
        self._late = feed is None  # text so far comes first, and may belong to a reply that is stored by now
        self._stored_texts: set[str] = set()
        self._unreturned: deque[TurnUpdate] = deque(hub.notices_of(turn) if feed is None else ())
        self._seen: set[tuple[SessionId, Seq]] = set()
        self._replies_of: dict[str, list[int]] = {}  # by call id; a model can reuse an id
        self._replies = 0  # replies whose records were returned
        self._speaking = 0  # reply that live text belongs to
        self._had_text = False  # there was text since the last call
        self._ended: set[str] = set()  # calls of the previous reply
        self._answering = answering
        self._read_first = True

    def close(self) -> None:
        self._feed.close()

    async def step(self) -> TurnUpdate | None:
        """Return what comes next; None if nothing came within `quiet_s`."""
        if not self._unreturned and self._read_first:
            self._read_first = False
            await self._read_records()
            self._join()
            self._answering = False
        if self._unreturned:
            return self._unreturned.popleft()
        return await self._next()

    # ------------------------------------------------------------ live

    async def _next(self) -> TurnUpdate | None:
        while True:
            try:
                event = await self._feed.next_event(self._quiet_s)
            except TimeoutError:
                await self._read_records()
                return self._unreturned.popleft() if self._unreturned else None
            if event is None:
                self._subscribe()
                await self._read_records()
                self._join()
            self._had_text = self._had_text or isinstance(event, TextDelta)
            if event is not None and (live := self._live(event)) is not None:
                return live
            if event is not None and not isinstance(event, TextDelta | TextReset | ReasoningDelta):
                await self._read_records(event if isinstance(event, TurnGaveUp) else None)
                self._update_position(event)
            if self._unreturned:
                return self._unreturned.popleft()

    def _live(self, event: Event) -> TurnUpdate | None:
        """Return what is passed on unchanged."""
        match event:
            case TextDelta() if self._is_current():
                return self._text(event)
            case TextReset() if self._is_current():
                return event
            case TurnBegan(session=session, turn=turn) if event.attempt > 1 and self._is_current():
                return TextReset(session=session, turn=turn)
            case CallProgress() | Notice() | Steered():
                return event
            case _:
                return None

    def _text(self, event: TextDelta) -> TurnUpdate | None:
        text = event.text + self._feed.waiting_text()
        if not self._late:
            return text
        if text in self._stored_texts:
            self._had_text = False
            return None
        self._late = False
        self._unreturned.append(text)
        return TextReset(session=event.session, turn=event.turn)

    def _join(self) -> None:
        """Assume that the text so far belongs to the first reply without a record."""
        if self._late:
            self._speaking = self._replies

    def _is_current(self) -> bool:
        return self._speaking == self._replies

    def _update_position(self, event: Event) -> None:
        """Update the text position: text after a call belongs to the reply after the one with the call."""
        if isinstance(event, TurnBegan) and not self._replies:
            self._late = False
        if not isinstance(event, CallEvent) or (place := self._place_of(event.call)) is None:
            return
        if place + 1 != self._speaking:
            self._ended.clear()
        if isinstance(event, CallEnded):
            self._ended.add(event.call)
        self._speaking = place + 1
        self._had_text = False
        self._late = self._late and not self._is_current()

    def _place_of(self, call: str) -> int | None:
        places = self._replies_of.get(call, [])
        least = self._speaking if self._had_text or call in self._ended else self._speaking - 1
        return next((place for place in places if place >= least), None)

    def _subscribe(self) -> None:
        self._feed.close()
        self._feed = FeedReader(self._hub.subscribe(turn=self._followed, late=True))
        self._late = True

    # ------------------------------------------------------------ stored

    async def _read_records(self, gave_up: TurnGaveUp | None = None) -> None:
        """Read new records. A turn can also be over without a record of its own."""
        records = await self._shared.records()
        for each in records:
            if (each.session, each.seq) not in self._seen:
                self._seen.add((each.session, each.seq))
                self._unreturned.append(each)
                self._count(each)
        if records and (followed := turn_of(records, self._turn)) != self._followed:
            self._followed = followed
            self._subscribe()
        if records and isinstance(records[-1].record, TurnFinished | TurnFailed):
            return
        if not self._unreturned:
            over = gave_up or await self._shared.outcome()
            if isinstance(over, TurnGaveUp):
                self._unreturned.append(over)

    def _count(self, update: TurnRecord) -> None:
        match update.record:
            case ModelReplied() as reply:
                self._stored_texts.add(said(reply.message)[0])
                for call in reply.calls:
                    self._replies_of.setdefault(call.id, []).append(self._replies)
                self._replies += 1
            case TurnFinished():
                self._replies += 1
            case Answered() if self._answering:
                self._speaking = self._replies
            case _:
                pass
