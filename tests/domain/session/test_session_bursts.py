"""A message that a client split is one turn, and one that is written anew while it waits is replaced."""

from __future__ import annotations

from dataclasses import replace

from hermes.domain.access.role import Role
from hermes.domain.ids import SessionKey, TurnId
from hermes.domain.session.builder import open_turns
from hermes.domain.session.fold.state_fold import replay
from hermes.domain.session.protocol import Accept, AnnounceStop, Hold, Rewrite, StartHeld, Suspend
from hermes.domain.session.state import Phase, is_pending
from hermes.domain.source import Place, Source
from hermes.domain.turn.submission import Handling, Submission
from tests.actors.harness import world
from tests.actors.talk import SessionTalk, names, of, refusal, said, user
from tests.support.waiting import until

THERE = Place(platform="toy", chat="c", message="1")
ANN = Source(platform="toy", user="ann", place=THERE)
WAIT_S = 0.8


def first(text: str = "one", **more: object) -> Submission:
    return replace(said(text, source=ANN), more_s=WAIT_S, **more)  # type: ignore[arg-type]


def rest(text: str = "two", joins: str = "one", *, more_s: float = 0.0) -> Submission:
    return replace(said(text, source=ANN, inbound=text), joins=TurnId(joins), more_s=more_s)


def test_a_message_whose_rest_is_on_its_way_is_stored_and_held() -> None:
    talk = SessionTalk()
    taken = talk.do(first())
    assert names(taken.records) == ["MessageReceived"]
    assert of(Hold, taken) == [Hold(wait_s=WAIT_S)]
    assert of(Accept, taken) == [Accept(turn=TurnId("one"), position=0, handling=Handling.STARTED)]
    assert is_pending(talk.session)
    assert talk.work() == []


def test_the_rest_joins_it_and_they_are_one_turn() -> None:
    talk = SessionTalk()
    talk.do(first())
    taken = talk.do(rest())
    assert names(taken.records) == ["Amended", "TurnStarted"]
    assert of(Accept, taken) == [Accept(turn=TurnId("one"), position=0, handling=Handling.JOINED)]
    assert taken.seen is not None
    assert (taken.seen.key, taken.seen.turn) == ("two", "one")
    assert talk.shown() == ["user: one", "user: two"]
    talk.answer()
    assert talk.session.phase == Phase.IDLE
    assert (talk.session.turns, talk.session.messages) == (1, 3)


def test_each_part_but_the_last_restarts_the_timer() -> None:
    talk = SessionTalk()
    talk.do(first())
    assert of(Hold, talk.do(rest(more_s=WAIT_S))) == [Hold(wait_s=WAIT_S)]
    talk.do(rest("three"))
    assert talk.shown() == ["user: one", "user: two", "user: three"]


def test_what_was_waited_for_in_vain_starts_alone() -> None:
    talk = SessionTalk()
    talk.do(first())
    assert names(talk.do(StartHeld()).records) == ["TurnStarted"]
    assert talk.do(StartHeld()).records == ()
    late = talk.do(rest())
    assert names(late.records) == ["MessageReceived"]  # the turn runs: what comes now waits as it always does


def test_a_crash_while_it_is_held_loses_no_part() -> None:
    talk = SessionTalk()
    talk.do(first())
    talk.do(rest(more_s=WAIT_S))
    assert replay(talk.session.id, talk.entries()) == talk.session
    talk.crash()
    assert talk.shown() == ["user: one", "user: two"]
    assert talk.work() == ["think"]


def test_a_text_that_is_split_while_a_turn_runs_waits_as_one() -> None:
    talk = SessionTalk()
    talk.say("before")
    talk.do(first())
    taken = talk.do(rest())
    assert of(Accept, taken) == [Accept(turn=TurnId("one"), position=1, handling=Handling.JOINED)]
    talk.answer()
    assert talk.shown() == ["user: before", "assistant: yes", "user: one", "user: two"]
    talk.answer()
    assert talk.session.phase == Phase.IDLE


def test_neither_a_stop_nor_a_suspension_is_undone_by_the_end_of_a_wait() -> None:
    for event in (AnnounceStop(reason="a restart"), Suspend(reason="enough")):
        talk = SessionTalk()
        talk.do(first())
        talk.do(event)
        assert talk.do(StartHeld()).records == ()
    assert talk.session.phase == Phase.SUSPENDED


def test_edit_replaces_a_waiting_message() -> None:
    talk = SessionTalk()
    talk.say("before")
    talk.do(said("wrong", source=ANN))
    taken = talk.do(Rewrite(place=THERE, message=user("right"), role=Role.USER))
    assert names(taken.records) == ["Amended"]
    talk.answer()
    assert talk.shown() == ["user: before", "assistant: yes", "user: right"]


def test_other_parts_stay_when_the_first_is_edited() -> None:
    talk = SessionTalk()
    talk.do(first())
    talk.do(rest(more_s=WAIT_S))
    talk.do(Rewrite(place=THERE, message=user("one, corrected"), role=Role.USER))
    talk.do(StartHeld())
    assert talk.shown() == ["user: one, corrected", "user: two"]


def test_what_has_begun_is_not_replaced() -> None:
    talk = SessionTalk()
    talk.do(said("a", source=ANN))
    taken = talk.do(Rewrite(place=THERE, message=user("b"), role=Role.USER))
    assert "does not wait any more" in refusal(taken)
    assert talk.shown() == ["user: a"]


async def test_the_shell_starts_what_it_held() -> None:
    async with world() as here:
        key = SessionKey("agent:main:toy:dm:c")
        await here.desk.submit(
            Submission(turn=TurnId("one"), messages=(user("one"),), source=ANN, key=key, more_s=0.01)
        )
        await until(lambda: len(here.agent.started) == 1)
        assert here.agent.prompt() == ['{"role":"user","content":"one"}']


async def test_an_edit_reaches_a_message_that_waits() -> None:
    async with world() as here:
        session = await here.say("before", "s")
        await here.started(1)
        await here.say("wrong", "s", source=ANN)
        await here.desk.rewrite(session.session, THERE, user("right"), Role.USER)
        await here.answer_next()
        await here.answer_next()
        assert await here.shown() == ["user: before", "assistant: yes", "user: right", "assistant: yes"]


def test_what_waits_while_a_conversation_is_compressed_is_still_answered_where_it_was_said() -> None:
    talk = SessionTalk()
    talk.say("before")
    talk.answer(full=True)
    talk.do(said("meanwhile", source=ANN))
    child = talk.summarised()
    assert [turn.place for turn in open_turns(child.session)] == [THERE]
