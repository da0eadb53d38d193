from __future__ import annotations

import asyncio
from contextlib import closing

import pytest

from hermes.domain.events import CallEnded, Event, PhaseChanged, ReasoningDelta, TextDelta, TextReset, TurnBegan
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.session.state import Phase
from hermes.domain.turn.tool_call import CallOutcome
from hermes.services.event_hub import EventHub

S, T = SessionId("s"), TurnId("t")


def delta(text: str, turn: str = "t", session: str = "s") -> TextDelta:
    return TextDelta(session=SessionId(session), turn=TurnId(turn), text=text)


async def test_each_watcher_gets_what_it_asked_for_in_order() -> None:
    hub = EventHub()
    turn, session, all_ = hub.subscribe(turn=TurnId("t")), hub.subscribe(session=SessionId("s")), hub.subscribe()
    for event in (delta("1"), delta("2", turn="u"), delta("3", session="r", turn="v"), delta("4")):
        hub.publish(event)
    for feed, count in ((turn, 2), (session, 3), (all_, 4)):
        events = [await anext(feed) for _ in range(count)]
        assert [event.text for event in events] == sorted(event.text for event in events)  # type: ignore[union-attr]
        feed.close()
    assert hub.watchers == 0


async def test_watcher_without_text_is_not_woken_by_pieces() -> None:
    hub = EventHub()
    began = TurnBegan(session=SessionId("s"), turn=TurnId("t"), attempt=1)
    quiet = hub.subscribe(turn=TurnId("t"), text=False)
    for event in (delta("1"), ReasoningDelta(session=SessionId("s"), turn=TurnId("t"), text="2"), began, delta("3")):
        hub.publish(event)
    assert quiet.waiting() == [began]


async def test_slow_watcher_is_disconnected_with_a_reason() -> None:
    hub = EventHub(bound=3)
    slow = hub.subscribe()
    for number in range(5):
        hub.publish(delta(str(number)))
    assert slow.lagged
    assert [event.text async for event in slow] == ["0", "1", "2"]  # type: ignore[union-attr]
    assert hub.watchers == 0


async def test_available_data_is_returned_immediately() -> None:
    hub = EventHub(bound=3)
    feed = hub.subscribe()
    assert feed.waiting() == []
    for text in "12":
        hub.publish(delta(text))
    assert [event.text for event in feed.waiting()] == ["1", "2"]  # type: ignore[union-attr]
    assert feed.waiting() == []
    for text in "3456":  # what was taken makes room
        hub.publish(delta(text))
    assert feed.lagged
    assert [event.text for event in feed.waiting()] == ["3", "4", "5"]  # type: ignore[union-attr]
    with pytest.raises(StopAsyncIteration):
        await anext(feed)


async def test_closing_wakes_waiters() -> None:
    feed = EventHub().subscribe()
    waiting = asyncio.create_task(anext(feed))
    await asyncio.sleep(0)
    feed.close()
    feed.close()
    with pytest.raises(StopAsyncIteration):
        await waiting


async def test_a_late_watcher_first_gets_the_text_so_far() -> None:
    hub = EventHub()
    for text in "abc":
        hub.publish(delta(text))
    hub.publish(delta("other", turn="u", session="r"))
    with closing(hub.subscribe(turn=TurnId("t"), late=True)) as late:
        hub.publish(delta("d"))
        assert late.waiting() == [delta("abc"), delta("d")]


@pytest.mark.parametrize(
    "end",
    [
        CallEnded(session=S, turn=T, call="c", name="tool", outcome=CallOutcome.OK, took_s=0.0),
        TextReset(session=S, turn=T),
        TurnBegan(session=S, turn=T, attempt=2),
        PhaseChanged(session=S, phase=Phase.SUSPENDED, reason=""),
    ],
)
async def test_text_of_an_ended_model_call_is_forgotten(end: Event) -> None:
    hub = EventHub()
    hub.publish(delta("abc"))
    hub.publish(end)
    hub.publish(delta("d"))
    with closing(hub.subscribe(turn=T, late=True)) as late:
        assert late.waiting() == [delta("d")]


async def test_note_gets_the_events_of_its_kinds_alone() -> None:
    hub = EventHub()
    began: list[Event] = []
    all_texts: list[Event] = []
    hub.publish(delta("before"))
    hub.on((TurnBegan,), began.append)
    hub.on((TextDelta, TextReset), all_texts.append)
    first = TurnBegan(session=S, turn=T, attempt=1)
    for event in (first, delta("1"), delta("2")):
        hub.publish(event)
    assert began == [first]
    assert all_texts == [delta("1"), delta("2")]
