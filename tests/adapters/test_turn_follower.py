"""Whoever follows a turn gets each record once and in order, and text only where it belongs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest

from hermes.adapters.openai_api.turns.shared_turn import SharedTurn
from hermes.adapters.openai_api.turns.turn_follower import TurnFollower, TurnUpdate
from hermes.domain.events import CallProgress, TextReset, TurnBegan, TurnGaveUp
from hermes.domain.ids import TurnId
from hermes.domain.read.views import TurnRecord
from hermes.domain.records import TurnFailed, TurnFinished
from hermes.domain.turn.turn_failure import Failure, FailureKind
from tests.adapters.a_call import a_call
from tests.adapters.turn_script import S, T, TurnScript

SUSPENDED = Failure(kind=FailureKind.SUSPENDED, message="later")


@pytest.fixture
def script() -> TurnScript:
    return TurnScript()


@pytest.fixture
def follower(script: TurnScript) -> Iterator[TurnFollower]:
    """There from the first moment."""
    feed = script.hub.subscribe(turn=T)
    with closing(TurnFollower(SharedTurn(script.desk, S, T), script.hub, T, quiet_s=30, feed=feed)) as follower:
        yield follower
    assert script.hub.watchers == 0


async def everything(follower: TurnFollower) -> list[TurnUpdate]:
    updates: list[TurnUpdate] = []
    while not updates or not _is_end(updates[-1]):
        step = await follower.step()
        assert step is not None
        updates.append(step)
    return updates


def _is_end(updates: TurnUpdate) -> bool:
    ends = TurnFinished | TurnFailed
    return isinstance(updates, TurnGaveUp) or (isinstance(updates, TurnRecord) and isinstance(updates.record, ends))


def shown(updates: Sequence[TurnUpdate | None]) -> list[str]:
    return [step if isinstance(step, str) else type(getattr(step, "record", step)).__name__ for step in updates]


def whole_turn(script: TurnScript) -> None:
    call = a_call()
    script.begin()
    script.say("Let me ", "look.")
    script.ask_for(call, "Let me look.")
    script.start(call)
    script.finish(call)
    script.say("Found")
    script.end("Found")


WHOLE = [
    *("MessageReceived", "TurnStarted", "ModelReplied", "ToolStarted", "ToolFinished", "TurnFinished"),
]


async def test_text_comes_before_its_record_while_the_follower_keeps_up(
    script: TurnScript, follower: TurnFollower
) -> None:
    call = a_call()
    script.begin()
    updates = [await follower.step() for _ in range(2)]
    script.say("Let me ", "look.")
    updates.append(await follower.step())
    script.ask_for(call, "Let me look.")
    script.start(call)
    updates += [await follower.step() for _ in range(2)]
    script.tell(CallProgress(session=S, turn=T, call=call.id, text="half"))
    updates.append(await follower.step())
    script.finish(call)
    updates.append(await follower.step())
    script.say("Found")
    updates.append(await follower.step())
    script.end("Found")
    updates.append(await follower.step())
    assert shown(updates) == [
        *("MessageReceived", "TurnStarted", "Let me look.", "ModelReplied", "ToolStarted", "CallProgress"),
        *("ToolFinished", "Found", "TurnFinished"),
    ]


async def test_text_of_a_returned_record_is_dropped(script: TurnScript, follower: TurnFollower) -> None:
    whole_turn(script)
    assert shown(await everything(follower)) == WHOLE


async def test_late_follower_gets_all_records_and_the_text_so_far(script: TurnScript) -> None:
    call = a_call()
    script.begin()
    script.say("Let me ")
    with closing(TurnFollower(SharedTurn(script.desk, S, T), script.hub, T, quiet_s=30)) as late:
        updates = [await late.step() for _ in range(4)]
        script.say("look.")
        updates.append(await late.step())
        script.ask_for(call, "Let me look.")
        script.start(call)
        updates += [await late.step() for _ in range(2)]
        script.finish(call)
        updates.append(await late.step())
        script.say("Found")
        updates.append(await late.step())
    assert shown(updates) == [*WHOLE[:2], "TextReset", "Let me ", "look.", *WHOLE[2:5], "Found"]


async def test_follower_of_a_queued_run_gets_the_text_of_its_first_reply(script: TurnScript) -> None:
    with closing(TurnFollower(SharedTurn(script.desk, S, T), script.hub, T, quiet_s=30)) as follower:
        script.begin()
        updates = [await follower.step() for _ in range(2)]
        script.say("Hel", "lo")
        updates.append(await follower.step())
    assert shown(updates) == [*WHOLE[:2], "Hello"]


async def test_text_so_far_of_a_stored_reply_is_dropped(script: TurnScript) -> None:
    """The record is stored before the event of its call is published."""
    call = a_call()
    script.begin()
    script.say("Let me look.")
    with closing(TurnFollower(SharedTurn(script.desk, S, T), script.hub, T, quiet_s=30)) as late:
        script.ask_for(call, "Let me look.")
        updates = [await late.step() for _ in range(3)]
        script.start(call)
        script.finish(call)
        script.say("Found")
        updates += [await late.step() for _ in range(3)]
    assert shown(updates) == [*WHOLE[:5], "Found"]


async def test_a_model_that_uses_a_calls_id_twice_is_still_heard(script: TurnScript, follower: TurnFollower) -> None:
    script.begin()
    for _ in range(2):
        script.ask_for(a_call())
        script.start(a_call())
        script.finish(a_call())
        while (step := await follower.step()) is not None:
            if shown([step]) == ["ToolFinished"]:
                break
    script.say("Found")
    assert await follower.step() == "Found"


async def test_a_follower_that_fell_behind_catches_up_from_the_journal() -> None:
    script = TurnScript(bound=2)
    feed = script.hub.subscribe(turn=T)
    with closing(TurnFollower(SharedTurn(script.desk, S, T), script.hub, T, quiet_s=30, feed=feed)) as follower:
        script.begin()
        assert shown([await follower.step(), await follower.step()]) == WHOLE[:2]
        script.say(*"abcd")
        call = a_call()
        script.ask_for(call, "abcd")
        script.start(call)
        script.finish(call)
        script.end("done")
        rest = [step for step in await everything(follower) if not isinstance(step, str)]
    assert shown(rest) == WHOLE[2:]


async def test_missed_outcome_is_read_from_the_journal_after_silence(script: TurnScript) -> None:
    with closing(TurnFollower(SharedTurn(script.desk, S, T), script.hub, T, quiet_s=0.01)) as follower:
        script.begin()
        assert shown([await follower.step(), await follower.step()]) == WHOLE[:2]
        assert await follower.step() is None
        script.hub = TurnScript().hub  # nobody listens to this one
        script.end("done")
        assert shown([await follower.step()]) == ["TurnFinished"]


async def test_a_reply_that_broke_off_is_taken_back(script: TurnScript, follower: TurnFollower) -> None:
    script.begin()
    assert shown([await follower.step(), await follower.step()]) == WHOLE[:2]
    script.say("Let")
    assert await follower.step() == "Let"
    script.tell(TextReset(session=S, turn=T))
    assert isinstance(await follower.step(), TextReset)
    script.tell(TurnBegan(session=S, turn=T, attempt=2))
    assert isinstance(await follower.step(), TextReset)


async def test_a_turn_that_is_over_without_a_record_says_so(script: TurnScript, follower: TurnFollower) -> None:
    script.begin()
    gave_up = TurnGaveUp(session=S, turn=T, failure=SUSPENDED)
    script.tell(gave_up)
    assert (await everything(follower))[-1] == gave_up


async def test_merged_message_is_followed_in_its_turn(script: TurnScript) -> None:
    """The journal tells the other turn's records for it, and its events go by that turn's name."""
    answer = TurnId("answer")
    call = a_call()
    script.begin()
    script.ask_for(call)
    script.ask(call)
    script.desk.turn_records[answer] = script.desk.turn_records[T]
    with closing(TurnFollower(SharedTurn(script.desk, S, answer), script.hub, answer, quiet_s=30)) as follower:
        updates = [await follower.step() for _ in range(4)]
        script.answer(call)
        script.start(call)
        script.finish(call)
        script.say("Done")
        script.end("Done")
        updates += await everything(follower)
    assert shown(updates)[-5:] == ["Asked", "Answered", "ToolStarted", "ToolFinished", "TurnFinished"]


async def test_text_after_an_answer_reaches_the_answering_client(script: TurnScript) -> None:
    call = a_call(question="Which?")
    script.begin()
    script.ask_for(call)
    script.ask(call)
    script.answer(call)
    script.finish(call)
    feed = script.hub.subscribe(turn=T)
    follower = TurnFollower(SharedTurn(script.desk, S, T), script.hub, T, quiet_s=30, feed=feed, answering=True)
    with closing(follower):
        updates = [await follower.step() for _ in range(6)]
        script.say("Thank", " you")
        updates.append(await follower.step())
    assert shown(updates)[-2:] == ["ToolFinished", "Thank you"]
