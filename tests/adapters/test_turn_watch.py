"""Text is passed on as it comes: in order, at once, and in as few pieces as it has arrived in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest

from hermes.actors.hub import EventHub
from hermes.adapters.openai_api.turn_watch import TurnWatch
from hermes.events import Event, TextDelta, TurnAnswered, TurnBegan
from hermes.ports import Receipt
from hermes.types import SessionId, TurnId, Usage
from tests.fakes import FakeHub, FakeSessions

S, T = SessionId("s"), TurnId("t")
ANSWER = TurnAnswered(session=S, turn=T, text="one two", model="m", finish_reason="stop", usage=Usage())
AGAIN = TurnBegan(session=S, turn=T, attempt=2)


@pytest.fixture
def hub() -> EventHub:
    return EventHub(bound=3)


@pytest.fixture
def desk() -> FakeSessions:
    return FakeSessions(FakeHub())


@pytest.fixture
def watch(hub: EventHub, desk: FakeSessions) -> Iterator[TurnWatch]:
    feed = hub.subscribe(turn=T)
    with closing(TurnWatch(desk, hub, Receipt(session=S, turn=T), feed, quiet_s=30)) as watch:
        yield watch


def publish(hub: EventHub, *events: str | Event) -> None:
    for event in events:
        hub.publish(TextDelta(session=S, turn=T, text=event) if isinstance(event, str) else event)


async def test_text_that_has_arrived_is_one_piece_and_the_outcome_follows_it(hub: EventHub, watch: TurnWatch) -> None:
    publish(hub, "one", " two", ANSWER)
    assert [await watch.step(), await watch.step()] == ["one two", ANSWER]


async def test_text_is_not_held_back_for_more_of_it(hub: EventHub, watch: TurnWatch) -> None:
    for text in ("one", " two"):
        step = asyncio.create_task(watch.step())
        await asyncio.sleep(0)
        publish(hub, text)
        assert await step == text


async def test_text_of_a_turn_begun_anew_is_not_joined_to_the_first(hub: EventHub, watch: TurnWatch) -> None:
    publish(hub, "one", AGAIN, "other")
    assert await watch.step() == "one"
    publish(hub, "more", ANSWER)
    assert await watch.step() == ANSWER


async def test_a_watch_that_fell_behind_with_events_in_hand_asks_the_journal(
    hub: EventHub, desk: FakeSessions, watch: TurnWatch
) -> None:
    publish(hub, "one", AGAIN)
    assert await watch.step() == "one"
    publish(hub, *"abcd")
    desk.outcomes[T] = ANSWER
    assert await watch.step() == ANSWER
