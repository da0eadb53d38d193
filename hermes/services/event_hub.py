"""Publish-subscribe hub of live events. Event loop only, bounded; `publish` never waits.

A subscriber that falls behind by more than the bound is closed with `lagged` set. It can read the journal instead.
The hub also keeps the text of model calls in progress and the last notices, for subscribers that come late.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Self, TypeAlias, get_args

from hermes.domain.events import (
    CallEvent,
    Event,
    Notice,
    PhaseChanged,
    ReasoningDelta,
    SessionMoved,
    TextDelta,
    TextReset,
    TurnAnswered,
    TurnBegan,
    TurnGaveUp,
)
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.session.state import Phase
from hermes.ports.hub import Hub, Subscription

_EVERYTHING = None
_KEPT_NOTICES = 64
_ENDS_OF_TEXT = (*get_args(CallEvent), TextReset, TurnBegan, TurnAnswered, TurnGaveUp, SessionMoved)
TEXT_KINDS = frozenset({TextDelta, PhaseChanged, *_ENDS_OF_TEXT})

Note: TypeAlias = Callable[[Any], None]  # takes an event of the kinds that it is registered for


class EventFeed(Subscription):
    """Events of one subscriber, in order."""

    def __init__(self, hub: EventHub, topic: str | None, bound: int, *, text: bool) -> None:
        self.lagged = False
        self.takes_text = text
        self._hub = hub
        self._topic = topic
        self._bound = bound
        self._events: deque[Event] = deque()
        self._arrived = asyncio.Event()
        self._closed = False

    def put(self, event: Event) -> None:
        if len(self._events) >= self._bound:
            self.lagged = True
            self.close()
            return
        self._events.append(event)
        self._arrived.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._closed:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        return self._events.popleft()

    def waiting(self) -> list[Event]:
        taken = list(self._events)
        self._events.clear()
        return taken

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._hub.drop(self._topic, self)
            self._arrived.set()


class EventHub(Hub):
    def __init__(self, bound: int = 4096) -> None:
        self._notes: list[tuple[Note, frozenset[type]]] = []
        self._notes_of: dict[type, tuple[Note, ...]] = {}  # by kind of event, as kinds are seen
        self._bound = bound
        self._feeds: dict[str | None, list[EventFeed]] = {}
        self._texts = TextsInProgress()
        self._notices: deque[Notice] = deque(maxlen=_KEPT_NOTICES)

    def subscribe(
        self,
        *,
        turn: TurnId | None = None,
        session: SessionId | None = None,
        late: bool = False,
        text: bool = True,
    ) -> EventFeed:
        topic = f"turn:{turn}" if turn is not None else f"session:{session}" if session is not None else _EVERYTHING
        feed = EventFeed(self, topic, self._bound, text=text)
        self._feeds.setdefault(topic, []).append(feed)
        if late and turn is not None and (written := self._texts.of(turn)) is not None:
            feed.put(written)
        return feed

    def notices_of(self, turn: TurnId) -> list[Notice]:
        return [notice for notice in self._notices if notice.turn == turn]

    def on(self, kinds: Iterable[type], note: Note) -> None:
        """Call `note` with every event of these kinds from now on. It must not wait."""
        self._notes.append((note, frozenset(kinds)))
        self._notes_of.clear()

    def publish(self, event: Event) -> None:
        kind = type(event)
        notes = self._notes_of.get(kind)
        if notes is None:
            notes = self._notes_of[kind] = self._find_notes(kind)
        for note in notes:
            note(event)
        if kind is Notice:
            self._notices.append(event)  # type: ignore[arg-type]
        feeds = self._feeds
        if not feeds:
            return
        is_text = kind is TextDelta or kind is ReasoningDelta
        for topic in (f"turn:{getattr(event, 'turn', '')}", f"session:{getattr(event, 'session', '')}", _EVERYTHING):
            if topic in feeds:
                for feed in tuple(feeds[topic]):
                    if feed.takes_text or not is_text:
                        feed.put(event)

    def _find_notes(self, kind: type) -> tuple[Note, ...]:
        found = tuple(note for note, kinds in self._notes if kind in kinds)
        return (*found, self._texts.note) if kind in TEXT_KINDS else found

    def drop(self, topic: str | None, feed: EventFeed) -> None:
        feeds = self._feeds[topic]
        feeds.remove(feed)
        if not feeds:
            del self._feeds[topic]

    @property
    def watchers(self) -> int:
        return sum(map(len, self._feeds.values()))


class TextsInProgress:
    """Text of each model call in progress, by session. One session has one turn at a time."""

    def __init__(self) -> None:
        self._pieces: dict[SessionId, tuple[TurnId, list[str]]] = {}

    def note(self, event: Event) -> None:
        match event:
            case TextDelta():
                turn, pieces = self._pieces.setdefault(event.session, (event.turn, []))
                if turn == event.turn:
                    pieces.append(event.text)
                else:
                    self._pieces[event.session] = (event.turn, [event.text])
            case PhaseChanged(phase=phase) if phase is not Phase.RUNNING:
                self._pieces.pop(event.session, None)
            case _ if isinstance(event, _ENDS_OF_TEXT):
                self._pieces.pop(event.session, None)

    def of(self, turn: TurnId) -> TextDelta | None:
        """Return the text so far of a turn's current model call; None if there is none."""
        for session, (writing, pieces) in self._pieces.items():
            if writing == turn:
                return TextDelta(session=session, turn=turn, text="".join(pieces))
        return None
