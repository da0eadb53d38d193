"""Sessions and their directory, with the journal's promises kept and broken."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from hermes.actors.directory_protocol import AnnounceStopToAll, Configure, Release, Sweep
from hermes.actors.kernel.actor import live_actors
from hermes.app.actor_system import DELIVERY, DIRECTORY
from hermes.domain.cause.cause import HoldCause, InterruptionCause
from hermes.domain.errors import (
    AlreadySeenError,
    BadInputError,
    BadRowError,
    BusyError,
    HermesError,
    SessionParkedError,
    SetAsideError,
    StoppingError,
    StorageFullError,
    UnknownSessionError,
)
from hermes.domain.events import PhaseChanged, TextDelta, TurnAccepted, TurnAnswered, TurnBegan, TurnGaveUp
from hermes.domain.ids import InboundKey, Seq, SessionId, SessionKey, TurnId
from hermes.domain.operations import Append, Erase
from hermes.domain.read.reader import Reader
from hermes.domain.records import Suspended, TurnFinished
from hermes.domain.session.fold.state_fold import replay
from hermes.domain.session.machine import step
from hermes.domain.session.protocol import AnnounceStop, Resume, Suspend
from hermes.domain.session.state import Phase
from hermes.domain.source import Place
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Submission
from hermes.domain.turn.tool_call import Call
from hermes.domain.turn.turn_failure import Failure, FailureKind
from tests.actors.harness import API, SessionHarness, world
from tests.actors.talk import assistant, result
from tests.support.actor_system import DIRECTORY_SETTINGS
from tests.support.journals import LoopJournal
from tests.support.memory_engine import MemoryEngine
from tests.support.waiting import until

RESTART = AnnounceStopToAll(stop=AnnounceStop(reason="restart", cause=InterruptionCause.RESTART))
S = SessionId("s")
T = TypeVar("T")


async def test_message_is_on_disk_before_its_sender_is_answered() -> None:
    async with world() as here:
        here.journal.held = []
        sending = asyncio.create_task(here.say("a", "s"))
        await until(lambda: bool(here.journal.held))
        await here.settle()
        assert not sending.done()
        assert here.agent.started == []

        here.journal.release()
        receipt = await sending
        assert receipt.session == "s"
        head = here.journal.engine.head(S)
        assert head is not None
        assert head.phase == Phase.RUNNING
        assert (await here.started(1)).job.turn == "a"


async def test_one_turn_at_a_time_and_the_next_prompt_holds_everything_in_order() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.say("b", "s")
        await here.started(1)
        assert len(here.agent.started) == 1
        await here.answer_next("A")
        await here.started(1)
        assert here.agent.prompt() == [
            '{"role":"user","content":"a"}',
            '{"role":"assistant","content":"A"}',
            '{"role":"user","content":"b"}',
        ]


async def test_concurrent_first_messages_share_one_session() -> None:
    async with world() as here:
        receipts = await asyncio.gather(*(here.say(f"m{n}", "s") for n in range(5)))
        assert {receipt.session for receipt in receipts} == {"s"}
        assert [receipt.position for receipt in receipts] == [0, 1, 2, 3, 4]
        keyed = await asyncio.gather(*(here.say(f"k{n}", key="agent:main:x:dm:1") for n in range(4)))
        assert len({receipt.session for receipt in keyed}) == 1


async def test_a_message_under_a_key_finds_the_session_that_the_key_means() -> None:
    async with world() as here:
        first = await here.say("a", key="agent:main:x:dm:1")
        await here.answer_next()
        again = await here.say("b", key="agent:main:x:dm:1")
        assert again.session == first.session
        other = await here.say("c", key="agent:main:x:dm:2")
        assert other.session != first.session


async def test_a_full_queue_says_so_and_the_session_goes_on() -> None:
    async with world() as here:
        for n in range(1 + DIRECTORY_SETTINGS.limits.max_queue):
            await here.say(f"m{n}", "s")
        with pytest.raises(BusyError, match="4 messages already wait"):
            await here.say("one too many", "s")
        for _ in range(1 + DIRECTORY_SETTINGS.limits.max_queue):
            await here.answer_next()
        assert await here.phase("s") == "idle"


async def test_the_same_inbound_id_is_one_turn_also_in_another_session_and_after_a_restart() -> None:
    journal = LoopJournal()
    async with world(journal) as here:
        first = await here.say("a", "s", inbound="api:1")
        again = await here.say("a", "s", inbound="api:1")
        elsewhere = await here.say("a", inbound="api:1")
        assert (again.turn, again.duplicate) == (first.turn, True)
        assert (elsewhere.session, elsewhere.duplicate) == ("s", True)
        with pytest.raises(BadInputError, match="another request"):
            await here.say("not a", "s", inbound="api:1")
        assert len(here.agent.started) == 1
    async with world(journal) as here:
        assert (await here.say("a", "s", inbound="api:1")).duplicate


async def test_an_unused_duplicate_session_leaves_no_trace() -> None:
    async with world() as here:
        await here.say("a", "s", inbound="api:1")
        await here.say("a", inbound="api:1")
        await until(lambda: here.live() == {"s"})
        assert len(await here.desk.recent(10)) == 1


async def test_open_work_is_taken_up_at_the_start_through_the_pending_index_alone() -> None:
    journal = LoopJournal()
    async with world(journal) as here:
        await here.say("a", "s")
        await here.say("b", "s")
        await here.say("done", "other")
        await here.started(2)
        next(work for work in here.agent.started if work.job.session == "other").answer()
        await here.settle()
    async with world(journal) as here:
        await here.started(1)
        assert here.live() == {"s"}
        assert here.agent.started[0].job.attempt == 2
        await here.answer_next("A")
        await here.answer_next("B")
        assert [m.message.decode() for m in await here.desk.messages(S, None, 10)] == [
            '{"role":"user","content":"a"}',
            '{"role":"assistant","content":"A"}',
            '{"role":"user","content":"b"}',
            '{"role":"assistant","content":"B"}',
        ]


async def test_a_session_interrupted_three_times_is_suspended_and_the_next_message_gets_a_fresh_one() -> None:
    journal = LoopJournal()
    async with world(journal) as here:
        await here.say("a", "s")
        await here.started(1)
    for _ in range(2):
        async with world(journal) as here:
            await here.started(1)
    async with world(journal) as here:
        await until(lambda: journal.engine.head(S).phase == Phase.SUSPENDED)  # type: ignore[union-attr]
        outcome = await here.desk.outcome(S, TurnId("a"))
        assert isinstance(outcome, TurnGaveUp)
        assert outcome.failure.kind == FailureKind.SUSPENDED

        receipt = await here.say("b", "s")
        assert receipt.session == "fresh-1"
        assert "/resume s" in receipt.notice
        assert (await here.desk.view(S)).lineage == ("s", "fresh-1")

        resumed = await here.desk.resume(S, "operator")
        assert resumed.phase == Phase.RUNNING
        await until(lambda: any(work.job.session == "s" for work in here.agent.started))


async def test_any_ancestor_id_leads_to_the_live_end_for_ever() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer_next()
        ids = ["s"]
        for n in range(5):
            await here.desk.end(SessionId(ids[0]), "a new chapter")
            receipt = await here.say(f"chapter {n}", "s")
            ids.append(receipt.session)
            assert "a new chapter" in receipt.notice
            await here.answer_next()
        assert len(set(ids)) == 6
        for ancestor in ids:
            assert (await here.say(f"via {ancestor}", ancestor)).session == ids[-1]
            await here.answer_next()
            assert (await here.desk.view(SessionId(ancestor))).session.id == ids[-1]
        assert (await here.desk.view(S)).lineage == tuple(ids)


async def test_two_messages_to_an_ended_session_continue_in_the_same_fresh_one() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer_next()
        await here.desk.end(S, "over")
        receipts = await asyncio.gather(*(here.say(f"m{n}", "s") for n in range(4)))
        assert len({receipt.session for receipt in receipts}) == 1


async def test_an_idle_session_leaves_memory_and_comes_back_with_its_transcript() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer_next("A")
        await here.say("busy", "t")
        await here.started(1)
        here.now += DIRECTORY_SETTINGS.idle_after_s + 1
        await sweep(here)
        await until(lambda: here.live() == {"t"})
        assert not (await here.desk.view(S)).live

        await here.say("b", "s")
        await here.started(2)
        assert len(here.agent.prompt()) == 3


async def test_head_of_a_session_in_memory_needs_no_read() -> None:
    async with world() as here:
        heads = here.system.heads
        await here.say("a", "s")
        head = heads.get(S)
        assert head is not None
        assert (head.phase, head.turn and head.turn.id) == (Phase.RUNNING, "a")
        assert head == await here.session("s")  # as it is on disk
        await here.answer_next("A")
        here.now += DIRECTORY_SETTINGS.idle_after_s + 1
        await sweep(here)
        await until(lambda: heads.get(S) is None)
        assert await here.desk.platform(S) == "api"


async def test_request_that_must_be_new_is_refused_if_an_equal_one_is_stored() -> None:
    async with world() as here:
        once = Submission(
            turn=TurnId("a"),
            messages=(EncodedMessage(b'{"role":"user","content":"a"}'),),
            source=API,
            session=S,
            locates=(InboundKey("request:1"),),
            once=True,
        )
        await here.desk.submit(once)
        with pytest.raises(AlreadySeenError) as refused:
            await here.desk.submit(replace(once, turn=TurnId("b")))
        assert (refused.value.seen.session, refused.value.seen.turn) == (S, "a")
        receipt = await here.desk.submit(replace(once, turn=TurnId("c"), once=False))
        assert (receipt.turn, receipt.duplicate) == ("c", False)
        found = await here.desk.located(InboundKey("request:1"))
        assert found is not None
        assert found.turn == "c"


async def test_a_message_that_meets_a_leaving_session_is_not_lost() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer_next()
        here.now += DIRECTORY_SETTINGS.idle_after_s + 1
        sweeping = asyncio.create_task(sweep(here))
        receipt = await here.say("b", "s")
        await sweeping
        assert receipt.session == "s"
        await here.started(1)


async def test_memory_pressure_lets_idle_sessions_leave_early_oldest_first() -> None:
    async with world() as here:
        for n in range(8):
            await here.say(f"m{n}", f"s{n}")
            await here.answer_next()
        here.directory.tell(Configure(settings=replace(DIRECTORY_SETTINGS, memory_limit_bytes=100)))
        here.memory = 101
        await sweep(here)
        await until(lambda: len(here.live()) == 6)
        assert "s0" not in here.live()
        assert "s7" in here.live()


async def test_a_full_disk_refuses_new_messages_and_keeps_the_answer_until_there_is_space() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.started(1)
        here.journal.refuse_with = StorageFullError("no space left")
        with pytest.raises(StorageFullError):
            await here.say("b", "s")
        with pytest.raises(StorageFullError):
            await here.say("c", "new")
        here.agent.started[0].answer("A")
        await here.settle()
        assert (await here.desk.view(S)).session.turn is not None  # reads go on

        here.journal.refuse_with = None
        await until(lambda: journal_has_answer(here.journal))
        assert await here.phase("s") == "idle"
        assert (await here.say("b", "s")).session == "s"


async def test_a_message_that_crashes_its_session_twice_becomes_a_dead_letter_and_others_go_on() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer_next()
        await here.say("other", "t")
        here.journal.poison = "s"
        with pytest.raises(SetAsideError, match="dead letter poison"):
            await here.say("poison", "s")
        [letter] = await here.desk.dead_letters()
        assert (letter.session, letter.turn) == ("s", "poison")
        assert await here.phase("t") == "running"

        here.journal.poison = ""
        assert (await here.say("b", "s")).session == "s"
        receipt = await here.desk.replay("poison")
        assert receipt.session == "s"
        assert await here.desk.dead_letters() == []


async def test_a_session_that_cannot_be_kept_alive_is_parked_and_an_operator_can_give_it_another_chance() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer_next()
        here.journal.poison = "s"
        for text in ("b", "c"):
            with pytest.raises(SetAsideError):
                await here.say(text, "s")
        with pytest.raises(SessionParkedError, match="hermes resume s"):
            await here.say("d", "s")
        assert (await here.say("e", "t")).session == "t"

        here.journal.poison = ""
        await here.desk.resume(S, "fixed")
        assert (await here.say("f", "s")).session == "s"


async def test_a_turn_that_crashes_its_session_each_time_ends_in_suspension_not_in_a_loop() -> None:
    async with world() as here:
        here.agent.poison = b"poison"
        await here.say("poison", "s")
        await until(lambda: here.journal.engine.head(S).phase == Phase.SUSPENDED)  # type: ignore[union-attr]
        assert "interrupted 3 times" in (await here.desk.view(S)).why


async def test_a_damaged_row_is_rebuilt_from_the_log_and_the_session_goes_on() -> None:
    class Damaged(MemoryEngine):
        bad = False

        def head(self, session: SessionId) -> object:  # type: ignore[override]
            if self.bad:
                raise BadRowError(session, "flipped byte")
            return super().head(session)

        def commit(self, batch: object) -> object:  # type: ignore[override]
            self.bad = False
            return super().commit(batch)  # type: ignore[arg-type]

    engine = Damaged()
    async with world(LoopJournal(engine)) as here:
        await here.say("a", "s")
        await here.answer_next("A")
    async with world(LoopJournal(engine)) as here:
        engine.bad = True
        await here.say("b", "s")
        await here.started(1)
        assert len(here.agent.prompt()) == 3
        assert replay(S, engine.log(S)) == engine.head(S)


async def test_before_a_stop_all_work_in_flight_is_marked_on_disk() -> None:
    async with world() as here:
        for n in range(5):
            await here.say(f"m{n}", f"s{n}")
        await here.say("x", "idle")
        await here.started(6)
        here.agent.started[-1].answer()
        await here.settle()
        for mark in await here.directory.ask(RESTART, block=False):
            await mark
        marked = [here.journal.engine.head(SessionId(f"s{n}")) for n in range(5)]
        assert all(head is not None and head.resume_reason == "restart" for head in marked)
        idle = here.journal.engine.head(SessionId("idle"))
        assert idle is not None
        assert idle.resume_reason == ""


async def test_after_a_stop_was_announced_nothing_is_taken_up_any_more() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.started(1)
        await here.directory.ask(Release(session=S), block=False)
        await here.directory.ask(RESTART, block=False)
        for take_up in (False, True):
            here.directory.tell(Configure(settings=replace(DIRECTORY_SETTINGS, take_up=take_up)))
        await here.settle()
        assert here.live() == set()


async def test_a_wish_that_comes_during_a_stop_is_granted_and_takes_up_nothing() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.started(1)
        await here.directory.ask(Release(session=S), block=False)
        await here.directory.ask(RESTART, block=False)
        await here.desk.prefer(S, "model", "m2", "somebody asked for it")
        await here.settle()
        head = await here.session("s")
        assert head.preferences.model == "m2"
        assert head.interruptions == 0
        assert len(here.agent.started) == 1


async def test_a_turn_that_a_wish_ends_during_a_stop_is_followed_by_none_and_what_waits_is_marked() -> None:
    async with world() as here:
        for text in ("a", "b"):
            await here.say(text, "s")
        await here.started(1)
        await here.directory.ask(Release(session=S), block=False)
        await here.directory.ask(RESTART, block=False)
        await here.desk.stop_turn(S, "somebody asked for it")
        head = await here.session("s")
        assert head.turn is None
        assert [waiting.id for waiting in head.queue] == ["b"]
        assert head.resume_reason == "restart"


async def test_what_is_begun_during_a_stop_is_marked_by_the_same_write() -> None:
    async with world() as here:
        await here.directory.ask(RESTART, block=False)
        await here.say("a", "s")
        assert (await here.session("s")).resume_reason == "restart"
        assert len(here.journal.transactions) == 1


async def test_what_was_written_when_a_stop_cut_it_off_is_kept_and_told_to_the_model() -> None:
    journal = LoopJournal()
    async with world(journal) as here:
        await here.say("a", "s")
        for written in ("half ", "half of it"):  # when the stop was announced, and when the drain was over
            (await here.started(1)).written = written
            for mark in await here.directory.ask(RESTART, block=False):
                await mark
    async with world(journal) as here:
        await here.started(1)
        [said, note] = here.agent.prompt()
        assert '"a"' in said
        assert "«half of it»" in note
        await here.answer_next("all of it")
        assert await here.shown() == ["user: a", f"user: {json.loads(note)['content']}", "assistant: all of it"]


async def test_what_a_session_has_written_is_said_though_it_ends_before_it_hears_of_that() -> None:
    async with world(children=(DELIVERY, DIRECTORY)) as here:
        place = Place(platform="toy", chat="7")
        await here.say("a", "s", source=replace(API, place=place))
        await here.started(1)
        here.journal.held = []
        here.agent.started[0].answer("A")
        await here.settle()
        await here.directory.ask(Release(session=S), block=False)
        here.journal.release()
        await until(lambda: here.platform.texts("7") == ["A"])


async def test_a_session_is_not_brought_back_as_it_was_before_its_last_life() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer_next()
        await here.directory.ask(Release(session=S), block=False)
        with here.journal.slow_reads() as slow:
            resuming = asyncio.create_task(here.desk.resume(S, "test"))
            await until(lambda: bool(slow))  # it was idle then
        await here.desk.suspend(S, "test")
        await here.directory.ask(Release(session=S), block=False)
        for tell in slow:
            tell()
        assert (await resuming).phase == Phase.IDLE


async def test_a_session_that_was_deleted_meanwhile_grows_no_branch() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer_next()
        await here.directory.ask(Release(session=S), block=False)
        await here.desk.prefer(S, "title", "here", "test")
        with here.journal.slow_reads() as slow:
            branching = asyncio.create_task(here.desk.branch(S))
            await until(lambda: bool(slow))  # its transcript was read
        assert here.journal.engine.commit([(Erase(session=S),)]) == [None]
        for tell in slow:
            tell()
        with pytest.raises(UnknownSessionError):
            await branching
        assert here.journal.engine.stats().sessions == 0


async def test_a_fresh_conversation_can_be_begun_during_a_stop() -> None:
    """It is no work; and refused after the earlier one had ended, it would be half done."""
    async with world() as here:
        here.desk.close("the daemon is stopping")
        fresh = await here.desk.begin(API, key=SessionKey("k"))
        assert fresh.phase == Phase.IDLE


async def test_a_closed_front_desk_refuses_with_the_reason_and_stores_nothing() -> None:
    async with world() as here:
        here.desk.close("the daemon is stopping")
        with pytest.raises(StoppingError, match="nothing was stored"):
            await here.say("a", "s")
        assert here.journal.transactions == []


async def test_a_stop_ends_the_turn_and_the_next_message_starts() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.say("b", "s")
        work = await here.started(1)
        await here.desk.stop_turn(S, "enough")
        assert work.cancelled
        await here.started(2)
        outcome = await here.desk.outcome(S, TurnId("a"))
        assert isinstance(outcome, TurnGaveUp)
        assert outcome.failure.kind == FailureKind.CANCELLED


async def test_outcomes_come_from_the_journal() -> None:
    async with world() as here:
        await here.say("a", "s")
        assert await here.desk.outcome(S, TurnId("a")) is None
        await here.answer_next("A")
        outcome = await here.desk.outcome(S, TurnId("a"))
        assert isinstance(outcome, TurnAnswered)
        assert outcome.text == "A"
        await here.say("b", "s")
        (await here.started(1)).fail(Failure(kind=FailureKind.AUTH, message="no key"))
        await here.settle()
        failed = await here.desk.outcome(S, TurnId("b"))
        assert isinstance(failed, TurnGaveUp)
        assert failed.failure.message == "no key"


async def test_a_watcher_sees_a_turn_from_its_acceptance_to_its_answer() -> None:
    async with world() as here:
        feed = here.hub.subscribe(turn=TurnId("a"))
        everything = here.hub.subscribe()
        await here.say("a", "s")
        await here.started(1)
        here.hub.publish(TextDelta(session=S, turn=TurnId("a"), text="A"))
        await here.answer_next("A")
        await here.desk.end(S, "over")
        kinds = [type(await anext(feed)) for _ in range(4)]
        assert kinds == [TurnAccepted, TurnBegan, TextDelta, TurnAnswered]
        assert PhaseChanged in [type(await anext(everything)) for _ in range(6)]
        feed.close()
        everything.close()
        assert here.hub.watchers == 0


async def test_erasing_forgets_a_conversation_and_not_what_was_begun_after_it() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer_next()
        await here.desk.end(S, "over")
        child = (await here.say("b", "s")).session
        await here.desk.erase(S)
        with pytest.raises(UnknownSessionError):
            await here.desk.view(S)
        assert here.live() == {child}
        await here.desk.erase(child)
        assert here.live() == set()
        assert (await here.say("again", "s")).session == "s"


async def test_paging_through_a_transcript_gives_each_message_once() -> None:
    async with world() as here:
        for n in range(300):
            await here.say(f"m{n}", "s")
            await here.answer_next(f"A{n}")
        whole = await here.desk.messages(S, None, 10_000)
        assert len(whole) == 600
        for limit in (1, 3, 50):
            pages, after = [], Seq(-1)
            while page := await here.desk.messages(S, after, limit):
                assert len(page) == limit or page[-1] == whole[-1]
                pages.extend(page)
                after = page[-1].seq
            assert pages == whole
            assert (await here.desk.messages(S, None, limit)) == whole[-limit:]


async def test_a_page_of_large_messages_is_cut_by_size_and_paging_goes_on() -> None:
    async with world() as here:
        for n in range(6):
            await here.say(f"m{n}" + "x" * (1 << 20), "s")
            await here.answer_next()
        pages, after = [], Seq(-1)
        while page := await here.desk.messages(S, after, 100):
            assert sum(len(m.message) for m in page) < 5 << 20
            pages.extend(page)
            after = page[-1].seq
        assert len(pages) == 12


def journal_has_answer(journal: LoopJournal) -> bool:
    return any(isinstance(entry.record, TurnFinished) for entry in journal.engine.log(S))


async def sweep(here: SessionHarness) -> None:
    """Now, instead of when its timer rings."""
    here.directory.tell(Sweep())
    await here.settle()


async def test_a_session_whose_memory_is_behind_the_disk_reloads_and_loses_no_message() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer_next("A")
        head = here.journal.engine.head(S)
        assert head is not None
        elsewhere = step(head, Suspend(reason="somebody else"), 1.0)
        elsewhere = step(elsewhere.session, Resume(reason="somebody else"), 2.0)
        behind = Append(
            session=S,
            expected_seq=head.next_seq,
            epoch=here.journal.epoch,
            records=(Suspended(at=1.0, reason="somebody else"), *elsewhere.records),
            head=elsewhere.session,
            pending=False,
        )
        assert here.journal.engine.commit([(behind,)]) == [None]

        receipt = await here.say("b", "s")
        assert receipt.session == "s"
        await here.started(1)
        assert len(here.agent.prompt()) == 3


async def test_a_refused_duplicate_does_not_harm_others_who_open_the_same_session() -> None:
    async with world() as here:
        await here.say("first", "base", inbound="api:1")
        for round_ in range(20):
            session = f"s{round_}"
            results = await asyncio.gather(
                here.say("first", session, inbound="api:1"),
                *(here.say(f"{session} m{n}", session) for n in range(3)),
            )
            assert results[0].duplicate
            assert [receipt.session for receipt in results[1:]] == [session] * 3


async def test_a_retry_that_meets_a_full_queue_is_still_a_duplicate() -> None:
    async with world() as here:
        await here.say("a", "s", inbound="api:1")
        for n in range(DIRECTORY_SETTINGS.limits.max_queue):
            await here.say(f"m{n}", "s")
        assert (await here.say("a", "s", inbound="api:1")).duplicate


async def test_retry_after_deletion_of_its_session_is_refused() -> None:
    async with world() as here:
        first = await here.say("a", "s", inbound="api:1")
        await here.answer_next()
        await here.desk.erase(S)
        again = await here.say("a", "s", inbound="api:1")
        assert again.duplicate
        outcome = await here.desk.outcome(again.session, first.turn)
        assert isinstance(outcome, TurnGaveUp)
        assert "deleted" in outcome.failure.message


async def test_erasing_tells_whoever_waits_and_spares_a_conversation_that_went_its_own_way() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer_next()
        await here.desk.suspend(S, "operator")
        child = (await here.say("b", "s")).session
        await here.desk.resume(S, "operator")
        await here.say("c", "s")
        feed = here.hub.subscribe(turn=TurnId("c"))
        await here.desk.erase(S)
        assert [type(await anext(feed)) for _ in range(1)] == [TurnGaveUp]
        feed.close()
        assert [session.id for session in await here.desk.recent(10)] == [child]
        await here.desk.erase(child)
        with pytest.raises(UnknownSessionError):
            await here.desk.erase(child)


@pytest.mark.parametrize("looks", [2, 3])  # at who belongs to it, before and after its end; at it, before it goes
async def test_a_session_that_is_taken_up_while_it_is_deleted_ends_before_it_is_gone(
    monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer_next()
        looked = 0

        async def fetch(query: Callable[[Reader], T]) -> T:
            nonlocal looked
            looked += 1
            found = query(here.journal.engine)
            if looked == looks:
                await here.desk.resume(S, "test")
                await here.say("b", "s")
            return found

        monkeypatch.setattr(here.journal, "fetch", fetch)
        await here.desk.erase(S)
        assert [job.cancelled for job in here.agent.started] == [True]
        assert here.journal.engine.stats().sessions == 0


async def test_a_conversation_whose_continuation_was_deleted_goes_on_in_a_fresh_session() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer_next()
        await here.desk.end(S, "somebody began anew")
        child = (await here.say("b", "s")).session
        await here.answer_next()
        await here.desk.erase(child)
        assert await here.phase("s") == Phase.ENDED
        fresh = (await here.say("c", "s")).session
        assert fresh not in (S, child)
        assert (await here.session("s")).id == fresh


async def test_erasing_takes_along_what_a_compression_makes_of_the_conversation_at_that_moment() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer_next(full=True)
        await until(lambda: bool(here.agent.summaries))
        erasing = asyncio.create_task(here.desk.erase(S))
        await here.summarise_next()
        await erasing
        assert await here.desk.recent(10) == []


async def test_waiting_client_learns_that_the_session_is_parked() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.started(1)
        feed = here.hub.subscribe(turn=TurnId("a"))
        here.journal.poison = "s"
        for text in ("b", "c"):
            with pytest.raises((SetAsideError, SessionParkedError)):
                await here.say(text, "s")
        told = await anext(feed)
        feed.close()
        assert isinstance(told, TurnGaveUp)
        assert "parked" in told.failure.message
        outcome = await here.desk.outcome(S, TurnId("a"))
        assert isinstance(outcome, TurnGaveUp)
        assert "parked" in (await here.desk.view(S)).why


async def test_a_clock_that_jumps_for_a_moment_makes_nobody_forget_what_was_seen() -> None:
    async with world() as here:
        await here.say("a", "s", inbound="api:1")
        for jump in (8 * 86400.0, -8 * 86400.0, 5.0):
            here.now += jump
            await sweep(here)
        assert (await here.say("a", "s", inbound="api:1")).duplicate


class SlowReads(LoopJournal):
    """Answers no look until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.looks: list[Callable[[], None]] = []

    def read(self, query: Callable[[Reader], T], then: Callable[[T | None, HermesError | None], None]) -> None:
        self.looks.append(lambda: then(query(self.engine), None))

    async def answer_next(self) -> None:
        await until(lambda: bool(self.looks))
        self.looks.pop(0)()


async def test_a_session_suspended_while_its_transcript_is_read_lets_the_next_message_wait_without_a_spin() -> None:
    journal = SlowReads()
    async with world(journal) as here:
        await journal.answer_next()  # what was granted for good
        await journal.answer_next()  # what is pending
        first = asyncio.create_task(here.say("a", "s"))
        await journal.answer_next()  # whose address that is
        await first
        await until(lambda: bool(journal.looks))
        await here.desk.suspend(S, "somebody asked for it")
        second = asyncio.create_task(here.say("b", "s"))
        await here.settle()
        handled = [actor.statistics().handled for actor in live_actors()]
        await here.settle()
        assert [actor.statistics().handled for actor in live_actors()] == handled

        await journal.answer_next()  # the transcript
        await journal.answer_next()  # where the conversation goes on
        assert (await second).session != S
        await until(lambda: bool(journal.looks))
        await journal.answer_next()


async def test_asking_again_for_a_held_turn_has_it_go_on() -> None:
    async with world() as here:
        await here.say("a", "s", inbound="k")
        await here.started(1)
        here.directory.tell(Configure(settings=replace(DIRECTORY_SETTINGS, hold=HoldCause.CONFIGURED)))
        await here.directory.ask(Release(session=S), block=False)
        await here.say("b", "other")
        await here.desk.prefer(S, "title", "looked at", "test")  # brings it back, held
        head = here.journal.engine.head(S)
        assert head is not None
        assert head.phase == Phase.RESUME_PENDING
        assert "resume.when" not in head.reason, "the model and the chat are told the reason"
        told_again = await here.say("a", "s", inbound="k", source=replace(API, automatic=True))
        assert told_again.duplicate
        head = here.journal.engine.head(S)
        assert head is not None
        assert head.phase == Phase.RESUME_PENDING, "no person has asked"
        assert (await here.say("a", "s", inbound="k")).duplicate
        await here.started(3)
        head = here.journal.engine.head(S)
        assert head is not None
        assert (head.phase, head.turn and head.turn.attempt) == (Phase.RUNNING, 2)


async def test_repeated_results_get_their_receipt_and_a_held_turn_goes_on() -> None:
    """The calls wait for no result any more, since the first request brought it."""
    call = Call(id="x", name="look")
    results = Submission(
        turn=TurnId("a"),
        messages=(result("x", "sunny"),),
        source=API,
        session=S,
        inbound=InboundKey("k"),
        opening=(assistant("", (call,)),),
        results=("x",),
    )
    async with world() as here:
        await here.desk.submit(results)
        await here.started(1)
        assert (await here.desk.submit(results)).duplicate
        with pytest.raises(BadInputError, match="do not wait for a result"):
            await here.desk.submit(replace(results, turn=TurnId("b"), inbound=InboundKey("k2")))
        here.directory.tell(Configure(settings=replace(DIRECTORY_SETTINGS, hold=HoldCause.CONFIGURED)))
        await here.directory.ask(Release(session=S), block=False)
        await here.desk.prefer(S, "title", "looked at", "test")  # brings it back, held
        assert await here.phase("s") == "resume_pending"
        assert (await here.desk.submit(results)).duplicate
        assert await here.phase("s") == "running"
