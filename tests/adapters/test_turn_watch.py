"""Text is passed on as it comes: in order, at once, and in as few pieces as it has arrived in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest

from hermes.adapters.openai_api.turns.pending import asked_in
from hermes.adapters.openai_api.turns.stream_cursor import STARTS_AGAIN
from hermes.adapters.openai_api.turns.turn_watch import TurnWatch
from hermes.domain.events import CallAnswered, CallAsked, Event, TextDelta, TurnAnswered, TurnBegan
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.turn.submission import Handling, Receipt
from hermes.domain.turn.usage import Usage
from hermes.services.event_hub import EventHub
from tests.adapters.a_call import waiting
from tests.support.fakes import FakeHub, FakeSessions, a_session

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


async def test_waiting_text_is_one_piece_before_the_outcome(hub: EventHub, watch: TurnWatch) -> None:
    publish(hub, "one", " two", ANSWER)
    assert [await watch.step(), await watch.step()] == ["one two", ANSWER]


async def test_text_is_not_held_back_for_more_of_it(hub: EventHub, watch: TurnWatch) -> None:
    for text in ("one", " two"):
        step = asyncio.create_task(watch.step())
        await asyncio.sleep(0)
        publish(hub, text)
        assert await step == text


async def test_text_of_a_restarted_turn_is_not_joined_to_the_first(hub: EventHub, watch: TurnWatch) -> None:
    publish(hub, "one", AGAIN, "other")
    assert await watch.step() == "one"
    publish(hub, "more", ANSWER)
    assert await watch.step() == f"{STARTS_AGAIN}othermore"
    assert await watch.step() == ANSWER


async def test_lagging_watch_reads_the_journal(hub: EventHub, desk: FakeSessions, watch: TurnWatch) -> None:
    publish(hub, "one", AGAIN)
    assert await watch.step() == "one"
    publish(hub, *"abcd")
    desk.outcomes[T] = ANSWER
    assert await watch.step() == ANSWER


async def test_answering_message_gets_the_text_of_the_asking_turn(hub: EventHub, desk: FakeSessions) -> None:
    answer = Receipt(session=S, turn=TurnId("answer"), handling=Handling.ANSWER, into=T)
    feed = hub.subscribe(turn=TurnId("answer"))
    with closing(TurnWatch(desk, hub, answer, feed, quiet_s=30)) as watch:
        publish(hub, "one", ANSWER)
        assert [await watch.step(), await watch.step()] == ["one", ANSWER]
        assert watch.spoken.rest(ANSWER.text) == " two"
    assert hub.watchers == 0


async def test_turn_queued_behind_a_question_gets_the_question(hub: EventHub, desk: FakeSessions) -> None:
    desk.sessions[S] = waiting(a_session(S), "another")
    receipt = Receipt(session=S, turn=T, position=1, handling=Handling.QUEUED)
    with closing(TurnWatch(desk, hub, receipt, hub.subscribe(turn=T), quiet_s=30)) as watch:
        asked = await watch.outcome()
        assert isinstance(asked, CallAsked)
        assert (asked.turn, asked.call) == ("another", "c1")


async def test_a_calls_id_that_is_used_again_is_another_question(hub: EventHub, desk: FakeSessions) -> None:
    desk.sessions[S] = waiting(a_session(S), T)
    asked = asked_in(desk.sessions[S])
    assert asked is not None
    answered = CallAnswered(session=S, turn=T, call="c1", name="terminal", answer="once", by="api")
    with closing(TurnWatch(desk, hub, Receipt(session=S, turn=T), hub.subscribe(turn=T), quiet_s=0.01)) as watch:
        publish(hub, asked, answered)
        assert [await watch.step(), await watch.step()] == [asked, answered]
        assert await watch.step() == asked, "found in the journal, and not told before"
        assert await watch.step() is None
