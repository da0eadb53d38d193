"""Resets over the real actors: at their time, never in a turn, explained when they wait, and done for good."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest
from loguru import logger

from hermes.actors.directory_protocol import Release
from hermes.actors.kernel.actor import live_actors
from hermes.actors.reset.after_reset import PREFIX
from hermes.actors.reset.reset_rules import GRACE_S, ResetSettings
from hermes.actors.reset.reset_scheduler import REVIEWED, PolicyChanged
from hermes.app.actor_system import RESETS
from hermes.domain.errors import SessionClosedError, SessionParkedError, StorageFullError, UnknownSessionError
from hermes.domain.events import Notice, PhaseChanged
from hermes.domain.ids import SessionId, SessionKey
from hermes.domain.operations import PutFact
from hermes.domain.process.process_record import Heartbeat
from hermes.domain.read.reader import Activity
from hermes.domain.records import Ended, LogEntry, ResetBlocked
from hermes.domain.reset_policy import OnStale, PolicyBook, ResetMode, ResetPolicy
from hermes.domain.session.fold.state_fold import replay
from hermes.domain.session.state import Phase, Session
from hermes.domain.source import Place
from tests.actors.reset.reset_harness import BOTH, CHAT, DAY, HOUR, KEY, MINUTE, START, days, settings
from tests.actors.talk import does
from tests.support.fakes import process_view
from tests.support.journals import LoopJournal
from tests.support.memory_engine import MemoryEngine
from tests.support.waiting import until

AUTOMATIC = replace(CHAT, user="", automatic=True)
IDLE = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=120)


@pytest.fixture
def logged() -> Iterator[list[str]]:
    lines: list[str] = []
    sink = logger.add(lambda line: lines.append(str(line).strip()), level="INFO", format="{level} {message}")
    yield lines
    logger.remove(sink)


def kinds(journal: LoopJournal, session: str) -> list[str]:
    return [type(entry.record).__name__ for entry in journal.engine.log(SessionId(session))]


# ---------------------------------------------------------------- at its time


async def test_an_idle_session_is_reset_at_its_time_and_not_with_the_next_message() -> None:
    async with days(settings(IDLE)) as (here, day):
        feed = here.hub.subscribe()
        first = await day.say()
        await day.passes(2 * HOUR - 1)
        assert day.stored(first.session).phase == Phase.IDLE
        await day.passes(MINUTE)
        ended = day.stored(first.session)
        assert (ended.phase, ended.reason) == (Phase.ENDED, "idle for 2 h")
        [told] = [event.text for event in feed.waiting() if isinstance(event, Notice)]
        assert told == (
            "The conversation was reset: idle for 2 h. Your next message starts a new one; "
            f"/resume {first.session} brings the earlier one back."
        )

        second = await day.say()
        assert second.session != first.session
        assert second.notice == told
        fresh = day.stored(second.session)
        assert (fresh.key, fresh.parent, fresh.messages) == (KEY, first.session, 2)
        assert here.journal.engine.bound(SessionKey(KEY)) == second.session
        assert (await day.say()).notice == ""


async def test_reset_notice_is_not_repeated_with_the_next_message() -> None:
    async with days(settings(IDLE)) as (_, day):
        chat = replace(CHAT, place=Place(platform="telegram", chat="7", message="1"))
        first = await day.say(source=chat)
        await day.passes(2 * HOUR + MINUTE)
        second = await day.say(source=replace(chat, place=Place(platform="telegram", chat="7", message="2")))
        assert (second.session != first.session, second.notice) == (True, "")
        await day.passes(2 * HOUR + MINUTE)
        elsewhere = await day.say(source=replace(chat, place=Place(platform="telegram", chat="8")))
        assert elsewhere.notice.startswith("The conversation was reset")


async def test_the_daily_reset_comes_at_its_hour() -> None:
    policy = ResetPolicy(mode=ResetMode.DAILY, at_hour=6)
    async with days(settings(policy)) as (_, day):
        first = await day.say()
        await day.passes(20 * HOUR)
        assert day.stored(first.session).phase == Phase.IDLE
        await day.passes(HOUR + MINUTE)
        assert day.stored(first.session).reason == "the daily reset at 6:00"


async def test_a_session_that_left_memory_is_found_and_leaves_it_again() -> None:
    async with days(settings(IDLE)) as (here, day):
        first = await day.say()
        here.journal.transactions.clear()
        await here.directory.ask(Release(session=first.session), block=False)
        assert here.live() == set()
        await day.passes(2 * HOUR + MINUTE)
        assert day.stored(first.session).phase == Phase.ENDED
        await until(lambda: here.live() == set())


async def test_more_sessions_than_one_look_holds_are_reset_at_once() -> None:
    async with days(settings(IDLE)) as (here, day):
        names = day.store((await day.say()).session, 600)
        await day.passes(2 * HOUR + MINUTE)
        await until(lambda: not here.journal.engine.due(inf_time(), 1))
        assert {day.stored(name).phase for name in names} == {Phase.ENDED}
        assert here.journal.engine.due(inf_time(), 10) == []


async def test_a_look_that_was_slow_does_not_end_the_one_after_it() -> None:
    async with days(settings(IDLE)) as (here, day):
        day.store((await day.say()).session, 600)
        with here.journal.slow_reads() as slow:
            await day.tick()  # finds nothing, and is told so late
        here.now += 2 * HOUR + MINUTE
        here.rules.look_at_the_clock()
        here.journal.held = []
        await day.tick()
        for tell in slow:
            tell()
        await here.settle()
        here.journal.release()
        await until(lambda: not here.journal.engine.due(inf_time(), 1))


def inf_time() -> float:
    return START + 365 * DAY


async def test_only_what_a_person_writes_puts_a_reset_off() -> None:
    async with days(settings(IDLE)) as (here, day):
        first = await day.say()
        await day.passes(HOUR)
        await here.desk.prefer(first.session, "title", "other", "a wish")
        await here.desk.compress(first.session)
        await here.summarise_next()
        child = (await here.session(first.session)).id
        assert child != first.session
        await day.passes(HOUR + MINUTE)
        ended = day.stored(child)
        assert (ended.phase, ended.reason, ended.active_at) == (Phase.ENDED, "idle for 2 h", START)


async def test_nobody_is_reset_where_resets_are_off_and_nothing_is_due() -> None:
    async with days(settings(ResetPolicy())) as (here, day):
        first = await day.say()
        assert here.journal.engine.due(inf_time(), 9) == []
        await day.passes(3 * DAY)
        assert day.stored(first.session).phase == Phase.IDLE


async def test_session_without_messages_is_not_reset() -> None:
    async with days() as (here, day):
        begun = await here.desk.begin(CHAT, key=SessionKey(KEY), title="empty")
        await day.passes(3 * DAY)
        assert day.stored(begun.id).phase == Phase.IDLE


async def test_a_message_that_comes_before_the_clock_ticks_is_judged_before_it_counts() -> None:
    async with days(settings(IDLE)) as (here, day):
        first = await day.say()
        here.now += 2 * HOUR + 5  # nobody has looked since
        second = await day.say()
        assert second.session != first.session
        assert second.notice.startswith("The conversation was reset: idle for 2 h.")
        assert kinds(here.journal, first.session).count("MessageReceived") == 1
        assert day.stored(second.session).parent == first.session


async def test_a_message_to_a_full_disk_is_refused_and_not_lost_between_two_sessions() -> None:
    async with days(settings(IDLE)) as (here, day):
        first = await day.say()
        here.now += 3 * HOUR
        here.journal.refuse_with = StorageFullError("no space")
        with pytest.raises(StorageFullError):
            await day.say()
        here.journal.refuse_with = None
        assert (await day.say()).session != first.session


# ---------------------------------------------------------------- turns


async def test_a_turn_that_runs_is_answered_before_the_reset() -> None:
    async with days(settings(IDLE)) as (here, day):
        first = await day.say(answer=False)
        await day.passes(3 * HOUR)
        assert day.stored(first.session).phase == Phase.RUNNING
        assert "One is due: idle for 3 h, after the turn that runs." in (await here.desk.view(first.session)).why
        await here.answer_next()
        assert day.stored(first.session).phase == Phase.IDLE
        await day.passes(MINUTE)
        assert day.stored(first.session).phase == Phase.ENDED


async def test_a_turn_that_waits_for_a_person_is_not_cut_off() -> None:
    async with days(settings(IDLE)) as (here, day):
        first = await day.say(answer=False)
        await here.call_next(replace(does("c"), question="which?"))
        await day.passes(DAY)
        assert day.stored(first.session).phase == Phase.WAITING
        due = "One is due: idle for 1 d, after the turn that waits for your answer."
        assert due in (await here.desk.view(first.session)).why


async def test_whoever_answers_is_there_and_is_not_reset_a_moment_later() -> None:
    async with days(settings(IDLE)) as (here, day):
        first = await day.say(answer=False)
        await here.call_next(replace(does("c"), question="which?"))
        await day.passes(3 * HOUR)
        await here.desk.answer(first.session, "this one", CHAT)
        await here.answer_next()
        await day.passes(2 * HOUR - MINUTE)
        assert day.stored(first.session).phase == Phase.IDLE
        await day.passes(2 * MINUTE)
        assert day.stored(first.session).reason == "idle for 2 h"


# ---------------------------------------------------------------- processes


async def test_two_forgotten_servers_block_nothing_and_are_named(logged: list[str]) -> None:
    async with days(settings(BOTH)) as (here, day):
        first = await day.say()
        day.forget(first.session, "http.server 8765")
        day.forget(first.session, "http.server 8766")
        await day.passes(2 * HOUR + MINUTE)
        ended = day.stored(first.session)
        assert ended.reason == "idle for 2 h"
        left = (
            "Inactive background processes still run: http.server 8765: http.server 8765 (pid 101), "
            "http.server 8766: http.server 8766 (pid 102)."
        )
        assert (ended.notice or "").endswith(f"{left} /processes kill ID ends one.")
        assert f"INFO session {first.session} was reset: {left}" in logged
        assert here.ended == []
        why = (await here.desk.view(first.session, exact=True)).why
        assert "Processes it left running:\nhttp.server 8765: http.server 8765 (pid 101) was started" in why


async def test_a_heartbeat_reaches_the_live_session_and_the_directory_for_a_sleeping_one() -> None:
    async with days(settings(IDLE)) as (here, day):
        session = (await day.say()).session
        beat = Heartbeat(process=process_view("p", session))
        [actor] = [actor for actor in live_actors() if actor.kind == "session"]
        before = actor.statistics().handled
        here.directory.tell(beat)
        await until(lambda: here.processes.received == [beat])
        assert actor.statistics().handled == before + 1
        await here.directory.ask(Release(session=session), block=False)
        here.directory.tell(beat)
        await until(lambda: here.processes.received == [beat, beat])
        assert not [actor for actor in live_actors() if actor.kind == "session"]


async def test_stale_processes_are_ended_where_that_is_configured() -> None:
    async with days(settings(replace(IDLE, on_stale=OnStale.END))) as (here, day):
        first = await day.say()
        day.forget(first.session, "http.server")
        await day.passes(2 * HOUR + MINUTE)
        assert here.ended == ["http.server"]
        assert "were ended: http.server: http.server (pid 101)" in (day.stored(first.session).notice or "")


async def test_a_build_that_works_blocks_the_reset_and_everybody_is_told_once(logged: list[str]) -> None:
    async with days(settings(IDLE)) as (here, day):
        first = await day.say()
        day.work(first.session, "make all")
        day.forget(first.session, "http.server")
        await day.passes_idly(3 * HOUR)
        assert day.stored(first.session).phase == Phase.IDLE
        blocks = [record for record in records(here.journal, first.session) if isinstance(record, ResetBlocked)]
        assert [block.by for block in blocks] == [("make all",)]
        [line] = [line for line in logged if "blocked" in line]
        assert line == (
            f"INFO session {first.session}: the reset is blocked: idle for 2 h, but work goes on in "
            "make all (pid 101): it did something 0 s ago"
        )
        why = (await here.desk.view(first.session)).why
        assert "It is reset after 2 h without a person's message. One is due and blocked: idle for 3 h" in why
        assert "make all (pid 101) was started 3 h ago" in why
        assert "A reset would wait for it: it did something 0 s ago." in why
        assert "http.server (pid 102)" in why
        assert "A reset would not wait for it: it did nothing for 3 h (the limit is 30 min)." in why

        day.work(first.session, "make test")
        await day.passes_idly(10 * MINUTE)
        assert [block.by for block in of_blocks(here.journal, first.session)] == [
            ("make all",),
            ("make all", "make test"),
        ]
        day.ends("make all")
        day.ends("make test")
        await day.passes_idly(MINUTE)
        assert day.stored(first.session).phase == Phase.ENDED


def records(journal: LoopJournal, session: SessionId) -> list[object]:
    return [entry.record for entry in journal.engine.log(session)]


def of_blocks(journal: LoopJournal, session: SessionId) -> list[ResetBlocked]:
    return [record for record in records(journal, session) if isinstance(record, ResetBlocked)]


async def test_the_agent_is_told_of_a_blocked_reset_with_its_next_turn_and_once() -> None:
    async with days(settings(IDLE)) as (here, day):
        first = await day.say()
        day.work(first.session, "make all")
        await day.passes(2 * HOUR + MINUTE)
        assert day.stored(first.session).blocked_by == ("make all",)
        assert (await day.say(answer=False)).session == first.session
        await here.started(1)
        notes = [each for each in here.agent.prompt() if "Note from the system" in each]
        assert len(notes) == 1
        assert "A reset of this conversation was due and did not happen: idle for 2 h, but work goes on" in notes[0]
        await here.answer_next()
        assert day.stored(first.session).blocked_by == ()
        await day.say(answer=False)
        await here.started(1)
        assert len([each for each in here.agent.prompt() if "Note from the system" in each]) == 1
        await here.answer_next()


# ---------------------------------------------------------------- who is told


async def test_where_nobody_is_to_be_told_nobody_is() -> None:
    quiet = replace(IDLE, notify_exclude_platforms=("telegram",))
    async with days(settings(quiet)) as (here, day):
        feed = here.hub.subscribe()
        first = await day.say()
        await day.passes(2 * HOUR + MINUTE)
        assert day.stored(first.session).phase == Phase.ENDED
        happened = feed.waiting()
        assert not [event for event in happened if isinstance(event, Notice)]
        assert [event.reason for event in happened if isinstance(event, PhaseChanged)] == ["idle for 2 h"]
        assert (await day.say()).notice == ""


async def test_a_platform_goes_before_a_kind_of_chat_and_both_before_the_rest() -> None:
    book = PolicyBook(
        default=IDLE,
        by_platform={"telegram": ResetPolicy()},
        by_type={"group": replace(IDLE, idle_minutes=10)},
    )
    async with days(ResetSettings(book=book)) as (here, day):
        slack = replace(CHAT, platform="slack")
        names = {
            "telegram": (await day.say(key="agent:main:telegram:group:1")).session,
            "group": (await day.say(key="agent:main:slack:group:1", source=slack)).session,
            "dm": (await day.say(key="agent:main:slack:dm:1", source=slack)).session,
        }
        await day.passes(30 * MINUTE)
        assert [name for name, id_ in names.items() if day.stored(id_).phase == Phase.ENDED] == ["group"]
        await day.passes(2 * HOUR)
        assert [name for name, id_ in names.items() if day.stored(id_).phase == Phase.ENDED] == ["group", "dm"]
        assert "resets are off here" in (await here.desk.view(names["telegram"])).why


async def test_failed_step_after_a_reset_is_logged_and_forgotten(logged: list[str]) -> None:
    journal = LoopJournal()
    async with days(settings(replace(IDLE, on_stale=OnStale.END)), journal) as (here, day):

        async def fail(process: str) -> None:
            raise OSError(process)

        here.end_process = fail
        first = await day.say()
        day.forget(first.session, "http.server")
        await day.passes(2 * HOUR + MINUTE)
        await until(lambda: any("an action after its reset failed" in line for line in logged))
        await until(lambda: not journal.engine.facts(PREFIX))


async def test_what_follows_a_reset_is_done_by_the_next_daemon_when_this_one_is_killed_in_between(
    logged: list[str],
) -> None:
    journal = LoopJournal()
    policy = replace(IDLE, on_stale=OnStale.END)
    async with days(settings(policy), journal) as (here, day):
        begun: list[str] = []

        async def never_done(process: str) -> None:
            begun.append(process)
            await asyncio.Event().wait()

        here.end_process = never_done
        first = await day.say()
        day.forget(first.session, "http.server")
        await day.passes(2 * HOUR + MINUTE)
        await until(lambda: begun == ["http.server"])
    for _ in range(2):
        async with days(settings(policy), journal) as (here, _):
            await until(lambda: not journal.engine.facts(PREFIX))
            await here.settle()
    assert [line for line in logged if "process http.server: nothing to kill" in line] == [
        "INFO process http.server: nothing to kill: there is no background process http.server"
    ]


async def test_what_follows_the_reset_of_a_session_that_was_deleted_since_is_forgotten() -> None:
    journal = LoopJournal()
    fact = PutFact(name=f"{PREFIX}gone", value=b'{"left": "", "end": []}')
    assert journal.engine.commit([(fact,)]) == [None]
    async with days(settings(IDLE), journal) as (here, _):
        await until(lambda: not journal.engine.facts(PREFIX))
        assert here.ended == []


# ---------------------------------------------------------------- what no person wrote


async def test_the_end_of_the_build_that_held_up_a_reset_is_heard_before_the_reset_comes() -> None:
    async with days(settings(IDLE)) as (here, day):
        first = await day.say()
        day.work(first.session, "make all")
        await day.passes(3 * HOUR)
        assert day.stored(first.session).blocked_by == ("make all",)
        day.ends("make all")
        heard = await here.say("the build has ended", first.session, source=AUTOMATIC)
        assert heard.session == first.session
        await here.answer_next()
        assert day.stored(first.session).phase == Phase.IDLE
        await day.passes(MINUTE)
        assert day.stored(first.session).reason == "idle for 3 h"


async def test_what_no_person_wrote_begins_no_conversation() -> None:
    async with days(settings(IDLE)) as (here, day):
        first = await day.say()
        await day.passes(2 * HOUR + MINUTE)
        before = here.journal.engine.stats().sessions
        with pytest.raises(SessionClosedError, match="idle for 2 h"):
            await here.say("a process has ended", first.session, source=AUTOMATIC)
        with pytest.raises(UnknownSessionError):
            await here.say("another has", "nobody", source=AUTOMATIC)
        assert here.journal.engine.stats().sessions == before
        second = await day.say()
        heard = await here.say("a third has", first.session, source=AUTOMATIC)
        assert heard.session == second.session
        await here.answer_next()


async def test_what_was_heard_before_the_reset_is_not_refused_after_it() -> None:
    async with days(settings(IDLE)) as (here, day):
        first = await day.say()
        await here.say("it has ended", first.session, inbound="process:1:end", source=AUTOMATIC)
        await here.answer_next()
        await day.passes(2 * HOUR + MINUTE)
        again = await here.say("it has ended", first.session, inbound="process:1:end", source=AUTOMATIC)
        assert (again.duplicate, again.session) == (True, first.session)


async def test_a_suspended_conversation_may_hear_of_it_later() -> None:
    async with days(settings(IDLE)) as (here, day):
        first = await day.say()
        await here.desk.suspend(first.session, "for now")
        with pytest.raises(SessionParkedError):
            await here.say("a process has ended", first.session, source=AUTOMATIC)
        await here.desk.resume(first.session, "again")
        assert (await here.say("a process has ended", first.session, source=AUTOMATIC)).session == first.session
        await here.answer_next()


# ---------------------------------------------------------------- done for good


async def test_a_reset_and_a_new_conversation_stay_done_whatever_is_recovered() -> None:
    journal = LoopJournal()
    async with days(settings(IDLE), journal) as (here, day):
        reset = await day.say()
        other = await day.say(key="agent:main:telegram:dm:8")
        await here.desk.end(other.session, "/new")
        await day.passes(2 * HOUR + MINUTE)
    for session, reason in ((reset.session, "idle for 2 h"), (other.session, "/new")):
        entries: list[LogEntry] = journal.engine.log(session)
        rebuilt = replay(session, entries)
        assert rebuilt == journal.engine.head(session)
        assert rebuilt is not None
        assert (rebuilt.phase, rebuilt.reason) == (Phase.ENDED, reason)
    async with days(settings(IDLE), journal) as (here, day):
        await day.passes(MINUTE)
        assert here.live() == set()
        for key, before in ((KEY, reset), ("agent:main:telegram:dm:8", other)):
            after = await day.say(key=key)
            assert after.session != before.session
            again = await here.say("to the old id", before.session, source=CHAT)
            assert again.session == after.session
            await here.answer_next()
            assert day.stored(before.session).phase == Phase.ENDED


async def test_whoever_comes_back_has_a_while_to_write_and_the_idle_clock_is_not_set_by_it() -> None:
    async with days(settings(IDLE)) as (here, day):
        first = await day.say()
        await day.passes(5 * HOUR)
        await here.desk.resume(first.session, "/resume", SessionKey(KEY))
        assert day.stored(first.session).active_at == START
        await day.passes(GRACE_S - MINUTE)
        assert day.stored(first.session).phase == Phase.IDLE
        assert "but a person resumed it and has 30 min to write" in (await here.desk.view(first.session)).why
        await day.passes(2 * MINUTE)
        assert day.stored(first.session).phase == Phase.ENDED

        await here.desk.resume(first.session, "/resume", SessionKey(KEY))
        assert (await day.say()).session == first.session
        await day.passes(2 * HOUR - MINUTE)
        assert day.stored(first.session).phase == Phase.IDLE


async def test_a_session_that_a_crash_cut_off_is_judged_by_when_somebody_wrote() -> None:
    journal = LoopJournal()
    async with days(settings(IDLE), journal) as (_, day):
        first = await day.say(answer=False)
    async with days(settings(IDLE), journal) as (here, day):
        here.now = START + 3 * HOUR
        here.rules.look_at_the_clock()
        await here.answer_next()
        assert day.stored(first.session).active_at == START
        await day.tick()
        await day.tick()
        assert day.stored(first.session).reason == "idle for 3 h"


async def test_overdue_reset_happens_at_the_start() -> None:
    journal = LoopJournal()
    async with days(settings(IDLE), journal) as (_, day):
        first = await day.say()
    async with days(settings(IDLE), journal) as (here, day):
        here.now = START + 5 * HOUR
        here.rules.look_at_the_clock()
        await day.tick()
        await day.tick()
        assert day.stored(first.session).reason == "idle for 5 h"


# ---------------------------------------------------------------- another policy, another clock


async def test_sessions_of_another_policy_are_found_after_a_reload() -> None:
    async with days(settings(ResetPolicy())) as (here, day):
        names = [first := (await day.say()).session, *day.store(first, 450)]
        here.rules.settings = settings(IDLE)
        here.system.children[RESETS].tell(PolicyChanged())
        await until(lambda: len(here.journal.engine.due(inf_time(), 1000)) == len(names))
        await until(lambda: here.journal.engine.fact(REVIEWED) == here.rules.fingerprint.encode())
        await day.passes(2 * HOUR + MINUTE)
        await until(lambda: not here.journal.engine.due(inf_time(), 1))
        assert {day.stored(name).phase for name in names} == {Phase.ENDED}


class CountingEngine(MemoryEngine):
    listed = 0

    def recent(self, limit: int, after: SessionId | Activity | None = None) -> list[Session]:
        self.listed += 1
        return super().recent(limit, after)


async def test_a_policy_that_was_looked_through_is_not_looked_through_at_the_next_start() -> None:
    engine = CountingEngine()
    journal = LoopJournal(engine)
    async with days(settings(IDLE), journal) as (_, day):
        await day.say()
        await until(lambda: journal.engine.fact(REVIEWED) is not None)
    journal.transactions.clear()
    engine.listed = 0
    async with days(settings(IDLE), journal) as (here, _):
        await here.settle()
        assert (engine.listed, journal.transactions) == (0, [])
    async with days(settings(BOTH), journal) as (here, _):
        await until(lambda: journal.engine.fact(REVIEWED) == here.rules.fingerprint.encode())
        assert engine.listed
    async with days(settings(ResetPolicy()), journal) as (here, _):
        await until(lambda: journal.engine.fact(REVIEWED) is None)


async def test_a_longer_policy_puts_off_what_was_due_under_the_shorter_one() -> None:
    async with days(settings(IDLE)) as (here, day):
        first = await day.say()
        here.rules.settings = settings(replace(IDLE, idle_minutes=600))
        await day.passes(3 * HOUR)
        assert day.stored(first.session).phase == Phase.IDLE
        await day.passes(7 * HOUR + MINUTE)
        assert day.stored(first.session).reason == "idle for 10 h"


async def test_after_the_clock_was_set_processes_are_heard_of_before_anything_is_judged(logged: list[str]) -> None:
    async with days(settings(IDLE)) as (here, day):
        first = await day.say()
        here.now += 8 * HOUR
        here.set_by += 8 * HOUR
        await day.tick()
        assert day.stored(first.session).phase == Phase.IDLE
        assert any("the clock was set by +28800 s" in line for line in logged)
        await day.passes(MINUTE)
        assert day.stored(first.session).phase == Phase.ENDED


async def test_a_daemon_that_was_frozen_hears_of_processes_before_it_judges_them(logged: list[str]) -> None:
    async with days(settings(replace(IDLE, on_stale=OnStale.END))) as (here, day):
        first = await day.say()
        day.work(first.session, "make all")
        await day.passes(3 * HOUR)
        here.processes.heard_at = here.now
        here.now += 10 * MINUTE
        here.frozen_s += 10 * MINUTE
        assert (await day.say()).session == first.session
        here.processes.heard_at = None
        await day.passes(3 * HOUR)
        here.processes.heard_at = here.now
        here.now += 10 * MINUTE
        here.frozen_s += 10 * MINUTE
        await day.tick()
        assert any("the daemon was paused: resets wait" in line for line in logged)
        here.processes.heard_at = None
        await day.tick()
        assert day.stored(first.session).blocked_by == ("make all",)
        day.ends("make all")
        await day.tick()
        assert day.stored(first.session).phase == Phase.ENDED


async def test_a_last_message_in_the_far_future_is_not_believed() -> None:
    async with days(settings(IDLE)) as (here, day):
        here.now += 30 * DAY
        here.set_by += 30 * DAY
        await day.tick()
        first = await day.say()
        here.now -= 30 * DAY
        here.set_by -= 30 * DAY
        await day.tick()
        await day.passes(MINUTE)
        assert "dated in the future" in day.stored(first.session).reason


# ---------------------------------------------------------------- in words


async def test_why_says_when_the_next_reset_is_due() -> None:
    async with days(settings(BOTH)) as (here, day):
        first = await day.say()
        await day.passes(30 * MINUTE)
        view = await here.desk.view(first.session)
        assert view.reset == (
            "It is reset after 2 h without a person's message, and daily at 6:00. "
            "The next one is due 2026-05-18 11:00 UTC, in 1 h 30 min: idle for 2 h."
        )
        assert view.reset in view.why
        await day.passes(2 * HOUR)
        ended = await here.desk.view(first.session, exact=True)
        assert ended.reset == ""
        assert "idle for 2 h" in ended.why


async def test_a_reset_says_in_its_record_that_it_was_one() -> None:
    async with days(settings(IDLE)) as (here, day):
        first = await day.say()
        await day.passes(3 * HOUR)
        [ended] = [record for record in records(here.journal, first.session) if isinstance(record, Ended)]
        assert ended.reason == "idle for 2 h"
        assert ended.notice
