"""Sessions that use tools, ask people and grow too long: the actors, the journal and the front desk together."""

from __future__ import annotations

import asyncio

import pytest

from hermes.actors.directory_protocol import AnnounceStopToAll
from hermes.domain.access.role import Role
from hermes.domain.cause.cause import InterruptionCause
from hermes.domain.errors import BadInputError, RefusedError, StorageFullError
from hermes.domain.events import CallAsked, CallBegan, CallEnded, SessionMoved, TurnAnswered, TurnBegan, TurnGaveUp
from hermes.domain.ids import SessionId, SessionKey, TurnId
from hermes.domain.media.scope import media_scope
from hermes.domain.operations import PutFact, Tally
from hermes.domain.records import ToolFinished, ToolStarted
from hermes.domain.session.protocol import AnnounceStop
from hermes.domain.session.state import Phase
from hermes.domain.source import Place, Source
from hermes.domain.turn.tool_call import CallOutcome
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.turn.usage import Usage
from tests.actors.harness import API, SessionHarness, world
from tests.actors.talk import asks, does, names, needs_leave, reads
from tests.support.journals import LoopJournal
from tests.support.waiting import until

RESTART = AnnounceStopToAll(stop=AnnounceStop(reason="restart", cause=InterruptionCause.RESTART))
S = SessionId("s")
CHILD = SessionId("fresh-2")  # of a session whose own id was given: the first fresh one was not needed
OVERFLOW = Failure(kind=FailureKind.CONTEXT_OVERFLOW, message="too long")


def outcomes(journal: LoopJournal, session: str = "s") -> dict[str, CallOutcome]:
    log = journal.engine.log(SessionId(session))
    return {e.record.call: e.record.outcome for e in log if isinstance(e.record, ToolFinished)}


def begun(journal: LoopJournal) -> list[str]:
    return [e.record.call for e in journal.engine.log(S) if isinstance(e.record, ToolStarted)]


async def answer_of(here: SessionHarness, session: str, turn: str) -> TurnAnswered:
    outcome = await here.desk.outcome(SessionId(session), TurnId(turn))
    assert isinstance(outcome, TurnAnswered)
    return outcome


# ---------------------------------------------------------------- tools


async def test_a_turn_with_tools_from_the_message_to_the_answer() -> None:
    async with world() as here:
        feed = here.hub.subscribe(turn=TurnId("a"))
        await here.say("a", "s")
        await here.call_next(does("c1"), does("c2"))
        first = await here.finish_next("one")
        assert (first.job.name, first.job.arguments, first.job.root) == ("write", "{}", "s")
        await here.finish_next("two")
        await here.answer_next("both")
        assert await here.shown() == [
            "user: a",
            "assistant: c1 c2",
            "tool: one",
            "tool: two",
            "assistant: both",
        ]
        answered = await answer_of(here, "s", "a")
        assert (answered.text, answered.usage) == ("both", Usage(prompt_tokens=2, completion_tokens=2))
        assert names(each.record for each in await here.desk.records(S, TurnId("a"))) == [
            "MessageReceived",
            "TurnStarted",
            "ModelReplied",
            "ToolStarted",
            "ToolFinished",
            "ToolStarted",
            "ToolFinished",
            "TurnFinished",
        ]
        kinds = [type(event) for event in feed.waiting()]
        feed.close()
        assert kinds.index(TurnBegan) < kinds.index(CallBegan) < kinds.index(CallEnded)
        assert kinds[-1] is TurnAnswered


async def test_jobs_of_a_session_in_a_chat_carry_the_scope_of_its_received_files() -> None:
    async with world() as here:
        await here.say("a", "s", source=Source(platform="toy", place=Place(platform="toy", chat="1", thread="9")))
        thought = await here.call_next(does("c1"))
        deed = await here.finish_next()
        await here.answer_next("done")
        assert thought.job.media_scope == deed.job.media_scope == media_scope("toy", "1")
        await here.say("b", "elsewhere")
        assert (await here.answer_next("done")).job.media_scope == ""


async def test_a_call_runs_only_when_its_intent_is_on_disk_and_the_model_sees_only_what_is() -> None:
    async with world() as here:
        await here.say("a", "s")
        thought = await here.started(1)
        here.journal.held = []
        thought.call(does("c1"))
        await until(lambda: bool(here.journal.held))
        await here.settle()
        assert here.agent.deeds == []
        here.journal.release()
        await until(lambda: bool(here.agent.deeds))
        assert begun(here.journal) == ["c1"]

        here.agent.started.clear()
        here.journal.held = []
        here.agent.deeds[0].finish()
        await until(lambda: bool(here.journal.held))
        await here.settle()
        assert here.agent.started == []
        here.journal.release()
        await here.started(1)


async def test_what_was_used_is_booked_by_day_model_and_platform() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.call_next(does("c1"))
        await here.finish_next()
        await here.answer_next()
        [tally] = await here.desk.used("1970-01-01")
        assert tally == Tally(
            day="1970-01-01",
            model="m",
            platform="api",
            usage=Usage(prompt_tokens=2, completion_tokens=2),
            turns=1,
        )


async def test_the_prompt_is_built_once_and_again_for_another_personality() -> None:
    async with world() as here:
        await here.say("a", "s")
        assert (await here.answer_next()).job.prompt is None
        await here.say("b", "s")
        assert (await here.answer_next()).job.prompt == b'{"role":"system","content":"be kind"}'
        await here.desk.prefer(S, "personality", "pirate", "asked")
        await here.say("c", "s")
        assert (await here.answer_next()).job.prompt is None
        with pytest.raises(BadInputError, match="no preference"):
            await here.desk.prefer(S, "colour", "red", "asked")


async def test_a_stop_cancels_what_is_going_on_and_closes_it() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.call_next(reads("r1"), reads("r2"), does("c1"))
        await until(lambda: len(here.agent.deeds) == 2)
        await here.desk.stop_turn(S, "enough")
        assert [deed.cancelled for deed in here.agent.deeds] == [True, True]
        assert outcomes(here.journal) == {
            "r1": CallOutcome.STOPPED,
            "r2": CallOutcome.STOPPED,
            "c1": CallOutcome.NOT_RUN,
        }
        here.agent.deeds[0].finish()  # it was on its way already
        await here.settle()
        assert await here.phase("s") == "idle"


async def test_a_report_that_comes_twice_counts_once() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.call_next(does("c1"))
        deed = await here.finish_next()
        deed.finish("again")
        await here.settle()
        assert await here.shown() == ["user: a", "assistant: c1", "tool: done"]
        assert len(here.agent.started) == 1


async def test_a_steering_message_ends_with_the_turn_it_became_part_of() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.call_next(does("c1"))
        receipt = await here.say("b", "s", busy="steer")
        assert receipt.handling == "steering"
        feed = here.hub.subscribe(turn=TurnId("b"))
        await here.finish_next()
        assert await here.desk.outcome(S, TurnId("b")) is None
        await here.answer_next("for both")
        assert (await answer_of(here, "s", "b")).text == "for both"
        assert [type(event) for event in feed.waiting()] == [TurnAnswered]
        feed.close()
        records = await here.desk.records(S, TurnId("b"))
        assert records == await here.desk.records(S, TurnId("a"))


async def test_an_interrupting_message_starts_as_soon_as_the_turn_has_ended() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.call_next(does("c1"))
        assert (await here.say("b", "s", busy="interrupt")).handling == "interrupting"
        assert here.agent.deeds[0].cancelled
        await here.answer_next("B")
        assert (await answer_of(here, "s", "b")).text == "B"


# ---------------------------------------------------------------- crashes


async def test_after_a_restart_a_call_with_effects_is_not_repeated_and_one_that_reads_is() -> None:
    journal = LoopJournal()
    async with world(journal) as here:
        await here.say("a", "s")
        await here.call_next(does("c1"))
        await here.say("b", "t")
        await until(lambda: any(thought.job.session == "t" for thought in here.agent.started))
        here.agent.started = [thought for thought in here.agent.started if thought.job.session == "t"]
        await here.call_next(reads("r1"))
    async with world(journal) as here:
        await here.started(1)
        await until(lambda: bool(here.agent.deeds))
        await here.settle()
        assert [deed.job.call for deed in here.agent.deeds] == ["r1"]
        assert outcomes(journal) == {"c1": CallOutcome.UNKNOWN}
        assert "[Note from the system: This turn was interrupted" in here.agent.prompt()[-1]


async def test_a_call_with_effects_is_not_repeated_even_if_the_disk_is_full_at_the_restart() -> None:
    journal = LoopJournal()
    async with world(journal) as here:
        await here.say("a", "s")
        await here.call_next(does("c1"))
    journal.refuse_with = StorageFullError("no space left")
    async with world(journal) as here:
        await until(lambda: here.live() == {"s"})
        await here.settle()
        journal.refuse_with = None
        await here.say("b", "s")  # before the session could write that it is back
        await until(lambda: bool(here.agent.started))
        assert here.agent.deeds == []
        assert outcomes(journal) == {"c1": CallOutcome.UNKNOWN}


async def test_an_actor_that_dies_between_intent_and_outcome_repeats_nothing() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.call_next(does("c1"))
        here.journal.poison = "s"
        here.agent.deeds[0].finish()
        await until(lambda: here.agent.deeds[0].cancelled)
        here.journal.poison = ""
        await here.started(1)
        assert len(here.agent.deeds) == 1
        assert outcomes(here.journal) == {"c1": CallOutcome.UNKNOWN}
        assert "an internal error interrupted the turn" in here.agent.prompt()[-1]


async def test_a_result_that_finds_no_space_is_offered_again() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.call_next(does("c1"))
        here.journal.refuse_with = StorageFullError("no space left")
        await here.finish_next("precious")
        here.journal.refuse_with = None
        await until(lambda: bool(here.agent.started))
        assert (await here.shown())[-1] == "tool: precious"
        assert begun(here.journal) == ["c1"]


# ---------------------------------------------------------------- asking a person


async def test_leave_is_asked_for_and_given() -> None:
    async with world() as here:
        feed = here.hub.subscribe(session=S)
        await here.say("a", "s")
        await here.call_next(needs_leave("c1"))
        assert await here.phase("s") == "waiting"
        assert here.agent.deeds == []
        assert CallAsked in [type(event) for event in feed.waiting()]
        feed.close()
        session = await here.desk.answer(S, "once", API)
        assert session.phase == Phase.RUNNING
        await here.finish_next()
        await here.answer_next()
        with pytest.raises(BadInputError, match="does not wait"):
            await here.desk.answer(S, "once", API)


async def test_a_question_outlives_restarts_and_is_answered_by_a_plain_message() -> None:
    journal = LoopJournal()
    async with world(journal) as here:
        await here.say("a", "s")
        await here.call_next(asks("q", "red", "blue"))
    for _ in range(4):
        async with world(journal) as here:
            await until(lambda: here.live() == {"s"})
            await here.settle()
            assert (await here.session()).interruptions == 0
    async with world(journal) as here:
        receipt = await here.say("2", "s")
        assert (receipt.handling, receipt.position) == ("answer", 0)
        await here.answer_next("blue it is")
        assert await here.shown() == ["user: a", "assistant: q", "tool: blue", "assistant: blue it is"]
        assert (await answer_of(here, "s", "2")).text == "blue it is"


async def test_leave_for_good_holds_in_every_session_and_after_a_restart() -> None:
    journal = LoopJournal()
    async with world(journal) as here:
        await here.say("a", "s")
        await here.call_next(needs_leave("c1", "rm"))
        await here.desk.answer(S, "always", API)
        written = [o for transaction in journal.transactions for o in transaction if isinstance(o, PutFact)]
        assert written == [PutFact(name="grant:rm", value=b"1")]
        await here.finish_next()
        await here.answer_next()
        await here.say("b", "t")
        await here.call_next(needs_leave("c2", "rm"))
        assert await here.phase("t") == "running"
        await here.finish_next()
        await here.answer_next()
    async with world(journal) as here:
        await here.say("c", "u")
        await here.call_next(needs_leave("c3", "rm"))
        assert await here.phase("u") == "running"
        assert await here.desk.fact("grant:rm") == b"1"


async def test_leave_for_good_that_is_taken_back_is_asked_for_again() -> None:
    async with world() as here:
        await here.desk.remember("grant:rm", b"1")
        await here.say("a", "s")
        await here.call_next(needs_leave("c1", "rm"))
        assert await here.phase("s") == "running"
        await here.finish_next()
        await here.answer_next()
        await here.desk.remember("grant:rm", None)
        await here.say("b", "s")
        await here.call_next(needs_leave("c2", "rm"))
        assert await here.phase("s") == "waiting"


async def test_only_the_author_answers_for_a_session() -> None:
    async with world() as here:
        mine = Source(platform="telegram", user="7", role=Role.ADMIN)
        other = Source(platform="telegram", user="8", role=Role.USER)
        await here.say("a", "s", source=mine)
        await here.call_next(needs_leave("c1"))
        with pytest.raises(BadInputError, match="only the person who began"):
            await here.desk.answer(S, "once", other)
        assert (await here.say("yes", "s", source=other)).handling == "queued"
        assert await here.phase("s") == "waiting"
        await here.desk.answer(S, "once", mine)
        assert await here.phase("s") == "running"


async def test_a_session_that_waits_stays_in_memory_only_as_long_as_it_must() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.call_next(asks("q"))
        await here.desk.suspend(S, "operator")
        with pytest.raises(BadInputError, match="does not wait"):
            await here.desk.answer(S, "red", API)
        await here.desk.resume(S, "operator")
        assert await here.phase("s") == "waiting"
        await here.desk.answer(S, "red", API)
        await here.answer_next()
        assert (await here.shown())[-2:] == ["tool: red", "assistant: yes"]


# ---------------------------------------------------------------- compression


async def test_a_full_context_is_compressed_and_the_conversation_goes_on_under_every_name() -> None:
    async with world() as here:
        first = await here.say("a", key="agent:main:x:dm:1")
        await here.answer_next("A", full=True)
        await here.summarise_next()
        child = await here.session(first.session)
        assert (child.parent, child.phase) == (first.session, Phase.IDLE)
        assert (await here.desk.view(child.id)).lineage == (first.session, child.id)
        by_key = await here.say("b", key="agent:main:x:dm:1")
        assert by_key.session == child.id
        assert by_key.notice == ""
        await here.started(1)
        assert here.agent.prompt() == [
            '{"role":"user","content":"[Summary of the earlier part]"}',
            '{"role":"assistant","content":"A"}',
            '{"role":"user","content":"b"}',
        ]
        assert here.agent.started[0].job.root == first.session
        assert here.agent.started[0].job.prompt is None
        await here.answer_next("B")
        assert (await here.say("c", first.session)).session == child.id


async def test_messages_that_come_while_room_is_made_are_answered_in_the_child() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer_next("A", full=True)
        assert (await here.say("b", "s")).handling == "queued"
        await here.say("c", "s")
        await here.summarise_next()
        await here.answer_next("B")
        await here.answer_next("C")
        for turn in ("b", "c"):
            answered = await answer_of(here, "s", turn)
            assert (answered.session, answered.text) == (CHILD, turn.upper())
        moved = await here.desk.records(S, TurnId("b"))
        assert names(each.record for each in moved) == [
            "MessageReceived",
            "ContextCarried",
            "TurnStarted",
            "TurnFinished",
        ]
        assert [each.session for each in moved] == ["s", *[CHILD] * 3]


async def test_a_turn_that_overflows_goes_on_in_the_child_and_its_sender_hears_the_answer() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.call_next(does("c1"))
        await here.say("b", "s", busy="steer")
        await here.finish_next()
        thought = await here.started(1)
        here.agent.started.pop(0)
        feed = here.hub.subscribe(turn=TurnId("a"))
        thought.fail(OVERFLOW)
        await here.summarise_next(keep=4)
        again = await here.started(1)
        assert (again.job.session, again.job.turn, again.job.replies) == (CHILD, "a", 1)
        await here.answer_next("at last")
        kinds = [type(event) for event in feed.waiting()]
        feed.close()
        assert SessionMoved in kinds
        assert kinds[-1] is TurnAnswered
        answered = await answer_of(here, "s", "a")
        assert (answered.session, answered.text) == (CHILD, "at last")
        assert answered.usage == Usage(prompt_tokens=2, completion_tokens=2)
        assert (await answer_of(here, "s", "b")).text == "at last"
        assert (await here.session()).interruptions == 0


async def test_a_turn_that_moved_survives_a_restart_in_the_child() -> None:
    journal = LoopJournal()
    async with world(journal) as here:
        await here.say("a", "s")
        (await here.started(1)).fail(OVERFLOW)
        await here.summarise_next()
        await here.started(2)
    async with world(journal) as here:
        thought = await here.started(1)
        assert (thought.job.session, thought.job.attempt) == (CHILD, 2)
        assert here.live() == {CHILD}
        await here.answer_next("A")
        assert (await answer_of(here, "s", "a")).text == "A"


async def test_a_summary_that_cannot_be_stored_is_offered_again() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer_next("A", full=True)
        await here.say("b", "s")
        await until(lambda: bool(here.agent.summaries))
        here.journal.refuse_with = StorageFullError("no space left")
        here.agent.summaries[0].finish()
        await here.settle()
        assert here.agent.started == []
        here.journal.refuse_with = None
        await here.say("c", "s")  # must not be lost, though the summary was made before it came
        await until(lambda: bool(here.agent.started))
        assert here.agent.started[0].job.session != S
        await here.answer_next("B")
        await here.answer_next("C")
        assert (await answer_of(here, "s", "c")).text == "C"


async def test_a_restart_while_room_is_made_keeps_everything() -> None:
    journal = LoopJournal()
    async with world(journal) as here:
        await here.say("a", "s")
        await here.answer_next("A", full=True)
        await here.say("b", "s")
        await until(lambda: bool(here.agent.summaries))
    async with world(journal) as here:
        await here.answer_next("B")
        assert await here.shown() == ["user: a", "assistant: A", "user: b", "assistant: B"]
        assert here.agent.summaries == []


async def test_a_stop_calls_the_summary_off() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer_next("A")
        await here.desk.compress(S, "the trip")
        await until(lambda: bool(here.agent.summaries))
        summary = here.agent.summaries[0]
        assert summary.job.focus == "the trip"
        await here.desk.stop_turn(S, "user")
        assert summary.cancelled
        summary.finish()  # it was on its way already
        await here.settle()
        assert (await here.session()).id == "s"


async def test_a_summary_that_fails_leaves_the_session_as_it_was() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer_next("A", full=True)
        await until(lambda: bool(here.agent.summaries))
        here.agent.summaries[0].fail()
        await here.settle()
        session = await here.session()
        assert (session.id, session.phase, session.compression_failures) == ("s", Phase.IDLE, 1)
        await here.say("b", "s")
        await here.answer_next("B")
        assert len(await here.shown()) == 4


async def test_a_stop_announced_while_room_is_made_starts_nothing_in_the_child() -> None:
    journal = LoopJournal()
    async with world(journal) as here:
        await here.say("a", "s")
        await here.answer_next("A", full=True)
        await here.say("b", "s")
        for mark in await here.directory.ask(RESTART, block=False):
            await mark
        await here.summarise_next()
        assert here.agent.started == []
    async with world(journal) as here:
        await here.answer_next("B")
        assert (await here.session()).interruptions == 0
        assert (await answer_of(here, "s", "b")).text == "B"


async def test_many_messages_meet_a_session_that_moves_and_none_is_lost() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer_next("A", full=True)
        await until(lambda: bool(here.agent.summaries))
        sending = [asyncio.create_task(here.say(f"m{n}", "s")) for n in range(2)]
        here.agent.summaries.pop().finish()
        sending += [asyncio.create_task(here.say(f"n{n}", "s")) for n in range(2)]
        receipts = await asyncio.gather(*sending)
        for _ in receipts:
            await here.answer_next()
        for receipt in receipts:
            assert isinstance(await here.desk.outcome(receipt.session, receipt.turn), TurnAnswered)
        assert (await here.session()).turns == 5


# ---------------------------------------------------------------- going back


async def three_turns(here: SessionHarness) -> None:
    for text in ("a", "b", "c"):
        await here.say(text, "s")
        await here.answer_next(text.upper())


async def test_the_last_turns_are_taken_back_for_the_model_and_for_readers() -> None:
    async with world() as here:
        await three_turns(here)
        await here.desk.undo(S, 2)
        assert await here.shown() == ["user: a", "assistant: A"]
        await here.say("d", "s")
        assert len(here.agent.prompt()) == 3
        with pytest.raises(BadInputError, match="running"):
            await here.desk.undo(S, 1)
        await here.answer_next("D")
        with pytest.raises(BadInputError, match="no 9 turns"):
            await here.desk.undo(S, 9)


async def test_what_was_taken_back_stays_so_after_a_restart() -> None:
    journal = LoopJournal()
    async with world(journal) as here:
        await three_turns(here)
        await here.desk.undo(S)
    async with world(journal) as here:
        await here.say("d", "s")
        await here.started(1)
        assert len(here.agent.prompt()) == 5


async def test_a_retry_sends_the_last_message_again() -> None:
    async with world() as here:
        await three_turns(here)
        receipt = await here.desk.retry(S, TurnId("again"), API)
        assert (receipt.session, receipt.turn) == ("s", "again")
        await here.answer_next("better")
        assert (await here.shown())[-2:] == ["user: c", "assistant: better"]
        assert (await answer_of(here, "s", "c")).text == "C"


async def test_a_branch_goes_its_own_way() -> None:
    async with world() as here:
        first = await here.say("a", key="agent:main:x:dm:1")
        await here.answer_next("A")
        branch = await here.desk.branch(first.session, "other")
        assert (branch.parent, branch.preferences.title) == (first.session, "other")
        await here.say("b", branch.id)
        await here.answer_next("B")
        assert len(await here.shown(branch.id)) == 4
        assert await here.shown(first.session) == ["user: a", "assistant: A"]
        assert (await here.say("c", key="agent:main:x:dm:1")).session == first.session


async def test_a_branch_can_take_the_key_with_it() -> None:
    async with world() as here:
        first = await here.say("a", key="agent:main:x:dm:1")
        await here.answer_next("A")
        branch = await here.desk.branch(first.session, move_key=True)
        assert (await here.say("b", key="agent:main:x:dm:1")).session == branch.id
        back = await here.desk.resume(first.session, "asked", SessionKey("agent:main:x:dm:1"))
        assert back.id == first.session
        assert (await here.say("c", key="agent:main:x:dm:1")).session == first.session


async def test_turns_from_before_a_compression_can_be_taken_back() -> None:
    async with world() as here:
        await three_turns(here)
        await here.desk.compress(S)
        await here.summarise_next(keep=1)
        await here.say("d", "s")
        await here.answer_next("D")
        earlier = await here.desk.undo(S, 3)  # d, c and b
        assert earlier.id not in ("s", CHILD)
        assert await here.shown() == ["user: a", "assistant: A"]
        assert (await here.session()).id == earlier.id
        assert (await here.say("e", CHILD)).session == earlier.id
        await here.answer_next("E")
        assert await here.phase("s") == "idle"
        with pytest.raises(BadInputError, match="no 9 turns"):
            await here.desk.undo(S, 9)


async def test_turns_from_before_two_compressions_can_be_taken_back() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer_next("A")
        await here.say("b", "s")
        await here.answer_next("B", full=True)
        await here.summarise_next(keep=1)
        await here.say("c", "s")
        await here.answer_next("C", full=True)
        await here.summarise_next(keep=1)
        await here.desk.undo(S, 2)  # c and b
        assert await here.shown() == ["user: a", "assistant: A"]


async def test_a_session_at_work_is_not_taken_back_to_before_its_beginning() -> None:
    async with world() as here:
        await three_turns(here)
        await here.desk.compress(S)
        await here.summarise_next(keep=1)
        await here.say("d", "s")
        await here.started(1)
        with pytest.raises(RefusedError, match="running"):
            await here.desk.undo(S, 3)
        await here.answer_next("D")
        assert (await here.session()).id == CHILD


async def test_a_turn_given_up_in_a_suspension_is_told_to_those_who_steered_it_too() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.call_next(does("c1"))
        await here.say("b", "s", busy="steer")
        await here.finish_next()
        await here.desk.suspend(S, "operator")
        outcome = await here.desk.outcome(S, TurnId("b"))
        assert isinstance(outcome, TurnGaveUp)
        assert outcome.failure.kind == FailureKind.SUSPENDED
