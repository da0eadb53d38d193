"""Background processes: the desk and the actors, over a machine that does what it is told and a virtual clock."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace

import pytest

from hermes.actors.kernel.actor import live_actors
from hermes.actors.process.process import ProcessActor
from hermes.actors.process.process_services import ProcessSettings
from hermes.actors.process.process_supervisor import KEEP_ENDED_S, ForgetProcesses
from hermes.domain.errors import BadInputError, BusyError, SessionClosedError, UnknownSessionError
from hermes.domain.events import ProcessEnded, ProcessStarted
from hermes.domain.ids import SessionId
from hermes.domain.operations import Erase, PutProcess
from hermes.domain.process.process import EndReason, ProcessSpec
from hermes.domain.process.process_record import Heartbeat
from hermes.domain.process.staleness import StalenessSettings, blocking
from hermes.domain.text.fence import without_fences
from tests.actors.process.process_harness import QUICK, SLOW, START, ProcessHarness, world
from tests.support.waiting import until


def text_of(here: ProcessHarness, number: int = -1) -> str:
    content: str = json.loads(here.sent[number].messages[-1])["content"]
    return content


# ---------------------------------------------------------------- starting


async def test_a_process_is_in_the_store_before_it_is_started() -> None:
    async with world(SLOW) as here:
        known: list[str] = []

        def look(spec: ProcessSpec) -> None:
            assert here.record(spec.id) is not None
            known.append(spec.id)

        here.host.on_start = look
        view = await here.start()
        assert known == [view.id]
        assert (view.command, view.session, view.pid) == ("make all", "s", 1000)
        await until(lambda: here.stored(view.id).pid == 1000)


async def test_its_start_and_its_end_are_events() -> None:
    async with world(SLOW) as here:
        name = (await here.start()).id
        here.host.finish(name, 3)
        await here.ended(name)
        await until(lambda: len(here.published) == 2)
        assert here.published == [
            ProcessStarted(session=SessionId("s"), process=name, command="make all"),
            ProcessEnded(session=SessionId("s"), process=name, command="make all", end="exit code 3"),
        ]


async def test_what_could_not_be_started_leaves_nothing() -> None:
    async with world(SLOW) as here:
        here.host.refuse = "no such directory"
        with pytest.raises(BadInputError, match="no such directory"):
            await here.start()
        await until(lambda: not here.journal.engine.processes())
        assert here.front.views() == ()


async def test_a_conversation_has_a_limit_and_all_together_have_one() -> None:
    async with world(ProcessSettings(heartbeat_s=3600, max_per_session=2, max_total=3)) as here:
        first = await here.start()
        await here.start()
        with pytest.raises(BadInputError, match="2 background processes may run for this conversation"):
            await here.start()
        await here.start("t")
        with pytest.raises(BadInputError, match="all conversations"):
            await here.start("t")
        here.host.finish(first.id)
        await here.ended(first.id)
        await here.start()


async def test_a_conversation_sees_its_own() -> None:
    async with world(SLOW) as here:
        first, second = await here.start(), await here.start("t")
        assert [view.id for view in await here.front.listed(SessionId("s"))] == [first.id]
        assert [view.id for view in here.front.views(SessionId("t"))] == [second.id]
        assert [view.id for view in here.front.views()] == [first.id, second.id]


# ---------------------------------------------------------------- looking


async def test_cpu_above_a_floor_and_output_are_activity_and_being_alive_is_not() -> None:
    async with world() as here:
        process = here.host.running[(await here.start()).id]
        name = process.handle.id
        await here.look()
        here.now += 100
        await here.look()
        assert (here.view(name).heartbeat_at, here.view(name).active_at) == (START + 100, START)
        process.cpu_s += 0.00001
        await here.look()
        assert here.view(name).active_at == START
        process.cpu_s += 1
        await until(lambda: here.view(name).active_at == START + 100)
        here.now += 100
        process.out += b"a line\n"
        await until(lambda: here.view(name).active_at == START + 200)
        assert here.view(name).output_bytes == 7


async def test_ports_are_shown() -> None:
    async with world() as here:
        name = (await here.start()).id
        here.host.running[name].ports = (8000,)
        await until(lambda: here.view(name).ports == (8000,))
        assert "port 8000" in here.front.explain(here.view(name))


async def test_when_it_last_did_something_outlives_the_daemon() -> None:
    async with world() as here:
        name = (await here.start()).id
        here.now += 1000
        here.host.running[name].out += b"x"
        await until(lambda: here.stored(name).active_at == START + 1000)
        here.now += 1000
        await here.restart()
        await until(lambda: here.board.get(name) and here.view(name).heartbeat_at == START + 2000)
        assert here.view(name).active_at == START + 1000


# ---------------------------------------------------------------- its end


async def test_end_is_known_immediately_without_a_scan() -> None:
    async with world(SLOW) as here:
        name = (await here.start()).id
        await until(lambda: here.host.running[name].pipes)
        here.host.finish(name, 3)
        view = await here.ended(name)
        assert (view.exit_code, view.reason) == (3, "exited")
        assert here.stored(name).exit_code == 3
        assert not here.sent


async def test_an_end_is_known_by_the_next_look_where_there_are_no_descriptors() -> None:
    async with world() as here:
        here.host.descriptors = False
        name = (await here.start()).id
        await here.look()
        here.host.finish(name, 1)
        assert (await here.ended(name)).exit_code == 1


async def test_a_wait_ends_in_time_when_the_process_does_not() -> None:
    async with world(SLOW) as here:
        name = (await here.start()).id
        assert (await here.front.wait(name, 0.01)).ended_at is None


async def test_a_process_is_written_to_read_and_killed() -> None:
    async with world(SLOW) as here:
        name = (await here.start()).id
        assert await here.front.write(name, b"hello") == 5
        await here.front.close_input(name)
        assert (await here.front.tail(name, 6)).data == b"closed"
        assert (await here.front.output(name, 5, 5)).data == b"hello"
        view = await here.front.kill(name, "somebody asked for it")
        assert (view.signal, view.reason, view.detail) == (15, "killed", "somebody asked for it")
        with pytest.raises(BadInputError, match="has ended already"):
            await here.front.kill(name, "once more")
        assert "signal 15" in here.front.explain(view)
        with pytest.raises(BadInputError, match="has ended"):
            await here.front.write(name, b"more")
        with pytest.raises(BadInputError, match="no background process"):
            await here.front.kill("proc_none", "")


# ---------------------------------------------------------------- telling it


async def test_an_end_is_told_once_as_a_message_that_waits_its_turn() -> None:
    async with world() as here:
        name = (await here.start(notify=True)).id
        here.host.running[name].out += b"all done\n"
        here.host.finish(name, 0)
        await until(lambda: here.stored(name).told)
        [told] = here.sent
        assert (told.inbound, told.busy, told.session) == (f"process:{name}:end", "queue", "s")
        assert told.source.automatic
        assert "has ended with exit code 0" in text_of(here)
        assert "all done" in text_of(here)
        await here.restart()
        await until(lambda: here.board.get(name) is not None)
        assert len(here.sent) == 1


async def test_awaited_end_is_not_reported_again() -> None:
    async with world(SLOW) as here:
        waited, killed, ended = [(await here.start(notify=True)).id for _ in range(3)]
        waiting = asyncio.create_task(here.front.wait(waited, 50))
        await until(lambda: here.board.is_heard(waited))
        here.host.finish(waited, 9)
        assert (await waiting).exit_code == 9
        await here.front.kill(killed, "the agent asked for it", heard=True)
        await here.front.kill(ended, "a person asked for it")
        await until(lambda: here.stored(ended).told)
        assert [each.inbound for each in here.sent] == [f"process:{ended}:end"]
        assert "signal 15 (killed: a person asked for it)" in text_of(here)
        assert not here.board.is_heard(waited)


async def test_a_wait_that_was_over_before_the_end_does_not_keep_it_from_being_told() -> None:
    async with world(SLOW) as here:
        name = (await here.start(notify=True)).id
        await here.front.wait(name, 0.01)
        here.host.finish(name)
        await until(lambda: here.stored(name).told)
        assert len(here.sent) == 1


async def test_recorded_end_is_reported_after_a_restart() -> None:
    async with world(SLOW) as here:
        name = (await here.start(notify=True)).id
        here.refuse_with = BusyError("too much to do")
        here.host.finish(name, 2)
        await until(lambda: here.attempts)
        assert here.stored(name).exit_code == 2
        assert not here.stored(name).told
        here.refuse_with = None
        await here.restart()
        await until(lambda: here.stored(name).told)
        assert len(here.sent) == 1


async def test_reported_end_without_mark_is_not_reported_twice() -> None:
    async with world(SLOW) as here:
        name = (await here.start(notify=True)).id
        here.on_sent = lambda: setattr(here.journal, "held", [])  # the mark never gets to the disk
        here.host.finish(name)
        await until(lambda: here.journal.held)
        here.on_sent = lambda: None
        here.journal.held = None
        assert not here.stored(name).told
        await here.restart()
        await until(lambda: here.stored(name).told)
        assert (len(here.sent), here.attempts) == (1, 2)


async def test_end_of_an_unwatched_process_is_reported_with_its_exit_code() -> None:
    async with world(SLOW) as here:
        name = (await here.start(notify=True)).id
        await here.close()
        here.host.finish(name, 7)
        await here.begin()
        await until(lambda: here.record(name) and here.stored(name).told)
        assert here.stored(name).exit_code == 7
        assert "exit code 7" in text_of(here)


async def test_a_process_of_which_nothing_is_left_is_told_to_be_lost() -> None:
    async with world(SLOW) as here:
        name = (await here.start(notify=True)).id
        await here.close()
        del here.host.running[name]
        await here.begin()
        await until(lambda: here.stored(name).told)
        assert here.stored(name).reason == EndReason.LOST
        assert "its shim was killed" in text_of(here)


async def test_watched_lines_are_reported_at_a_limited_rate() -> None:
    async with world() as here:
        name = (await here.start(watch=("ready",))).id
        out = here.host.running[name].out
        out += b"starting\nserver is ready\n"
        await until(lambda: len(here.sent) == 1)
        assert "server is ready" in text_of(here)
        assert "starting" not in text_of(here)
        out += b"ready again\n"
        await here.look()
        out += b"ready at last\n"
        await here.look()  # whatever looks when the time has come knows of both
        assert len(here.sent) == 1
        here.now += 20
        await until(lambda: len(here.sent) == 2)
        assert "ready again\nready at last" in text_of(here)
        assert here.stored(name).watched_bytes == len(out)


async def test_delayed_watched_line_is_reported_at_the_end() -> None:
    async with world() as here:
        name = (await here.start(watch=("ready",))).id
        here.host.running[name].out += b"ready 1\n"
        await until(lambda: len(here.sent) == 1)
        here.host.running[name].out += b"ready 2\n"
        await here.look()
        here.host.finish(name)
        await until(lambda: len(here.sent) == 2)
        assert without_fences(text_of(here)).endswith("ready 2")


async def test_delayed_watched_line_is_reported_by_the_next_daemon() -> None:
    async with world() as here:
        name = (await here.start(watch=("ready",))).id
        here.host.running[name].out += b"ready 1\n"
        await until(lambda: len(here.sent) == 1)
        here.host.running[name].out += b"ready 2\n"
        await here.look()
        await here.restart()
        await until(lambda: len(here.sent) == 2)
        assert without_fences(text_of(here)).endswith("ready 2")
        assert "ready 1" not in text_of(here)


async def test_the_last_line_is_looked_through_before_the_end_is_told() -> None:
    async with world(SLOW) as here:
        name = (await here.start(watch=("ready",), notify=True)).id
        here.host.running[name].out += b"it is ready"  # no newline
        here.host.finish(name)
        await until(lambda: here.stored(name).told)
        assert [each.inbound for each in here.sent] == [f"process:{name}:watch:11", f"process:{name}:end"]


# ---------------------------------------------------------------- crashes


async def test_an_actor_that_crashes_is_restarted_and_the_process_does_not_notice() -> None:
    async with world() as here:
        name = (await here.start(notify=True)).id
        await until(lambda: here.host.running[name].pipes)
        for actor in _actors():
            actor.actor_ref.tell(RuntimeError("a bug"))
        await until(lambda: len(here.host.running[name].pipes) == 2)
        assert not here.host.running[name].killed
        here.host.finish(name, 4)
        await until(lambda: here.stored(name).told)
        assert here.stored(name).exit_code == 4


def _actors() -> list[ProcessActor]:
    return [actor for actor in live_actors() if isinstance(actor, ProcessActor)]


# ---------------------------------------------------------------- forgetting


async def test_what_has_ended_stays_for_a_while_and_is_then_forgotten() -> None:
    async with world() as here:
        name = (await here.start()).id
        here.host.finish(name)
        await here.ended(name)
        assert [view.id for view in here.front.views()] == [name]
        here.now += KEEP_ENDED_S + 10
        await until(lambda: not here.front.views())
        assert here.host.forgotten == [name]
        await until(lambda: not here.journal.engine.processes())


async def test_a_deleted_conversation_takes_its_processes_along_without_a_word() -> None:
    async with world() as here:
        first, second = await here.start(notify=True), await here.start("t")
        here.desk.tell(ForgetProcesses(session=SessionId("s")))
        await until(lambda: [view.id for view in here.front.views()] == [second.id])
        assert here.host.running[first.id].killed
        assert not here.host.running[second.id].killed
        assert not here.sent


async def test_all_are_ended_when_the_daemon_takes_them_along() -> None:
    async with world(QUICK) as here:
        names = [(await here.start()).id for _ in range(3)]
        assert await here.front.end_all("the daemon stops") == 3
        assert all(here.view(name).ended_at is not None for name in names)


async def test_a_process_that_is_being_started_while_its_conversation_is_deleted_is_ended() -> None:
    async with world() as here:
        may_start = threading.Event()
        here.host.on_start = lambda _: may_start.wait(30)  # type: ignore[assignment]
        starting = asyncio.create_task(here.start(notify=True))
        await until(lambda: here.front.views() != ())
        here.desk.tell(ForgetProcesses(session=SessionId("s")))
        may_start.set()
        view = await starting
        await until(lambda: here.front.views() == ())
        assert here.host.running[view.id].killed
        assert not here.sent


async def test_a_process_whose_conversation_was_deleted_when_the_daemon_died_is_ended_by_the_next() -> None:
    async with world() as here:
        name = (await here.start(notify=True)).id
        other = (await here.start("t")).id
        assert here.journal.engine.commit([(Erase(session=SessionId("s")),)]) == [None]
        await here.restart()
        await until(lambda: [view.id for view in here.front.views()] == [other])
        assert here.host.running[name].killed
        assert not here.host.running[other].killed
        assert not here.sent


async def test_a_branch_keeps_its_processes_when_what_it_grew_from_is_deleted() -> None:
    async with world() as here:
        own, of_branch = await here.start(), await here.start("t")
        record = replace(here.stored(of_branch.id), root=SessionId("s"))
        assert here.journal.engine.commit([(PutProcess(record=record),)]) == [None]
        await here.restart()
        await until(lambda: len(here.front.views()) == 2)
        here.desk.tell(ForgetProcesses(session=SessionId("s")))
        await until(lambda: [view.id for view in here.front.views()] == [of_branch.id])
        assert here.host.running[own.id].killed
        assert not here.host.running[of_branch.id].killed


async def test_ending_all_is_not_held_up_by_one_of_which_nothing_is_left() -> None:
    async with world(SLOW) as here:
        first, second = await here.start(), await here.start()
        here.board.put(replace(here.board[first.id], handle=None))
        here.host.running.pop(first.id)
        assert await here.front.end_all("the daemon stops") == 2
        assert here.host.running[second.id].killed


async def test_cancelled_wait_leaves_nothing_behind() -> None:
    async with world(SLOW) as here:
        name = (await here.start()).id
        await here.front.wait(name, 0.01)
        waiting = asyncio.create_task(here.front.wait(name, 50))
        await until(lambda: bool(here.board._waiting))
        waiting.cancel()
        await asyncio.wait([waiting])
        assert here.board._waiting == {}
        assert here.view(name).ended_at is None


# ---------------------------------------------------------------- nobody there


@pytest.mark.parametrize("error", [SessionClosedError("it has ended"), UnknownSessionError("it is gone")])
async def test_an_end_that_no_conversation_can_hear_is_announced_and_begins_none(error: Exception) -> None:
    async with world(SLOW) as here:
        here.refuse_with = error  # type: ignore[assignment]
        name = (await here.start(notify=True)).id
        here.host.finish(name, 3)
        await until(lambda: here.stored(name).told)
        [told] = here.announced
        assert told.session == "s"
        assert "exit code 3" in told.text
        assert "make all" in told.text
        assert (here.attempts, here.sent) == (1, [])


async def test_concurrent_ends_are_each_reported_once() -> None:
    async with world(ProcessSettings(heartbeat_s=3600, max_per_session=200, max_total=200)) as here:
        names = [(await here.start(notify=True)).id for _ in range(200)]
        for number, name in enumerate(names):
            here.host.finish(name, number)
        await until(lambda: all(here.stored(name).told for name in names))
        assert sorted(str(each.inbound) for each in here.sent) == sorted(f"process:{name}:end" for name in names)
        assert [here.view(name).exit_code for name in names] == list(range(200))


async def test_one_that_has_just_ended_blocks_a_reset_until_it_is_told_and_not_for_ever() -> None:
    async with world(SLOW) as here:
        here.refuse_with = BusyError("not now")
        name = (await here.start(notify=True)).id
        here.host.finish(name)
        view = await here.ended(name)
        assert "not notified yet" in here.front.blocks(view)
        assert "A reset would wait for it" in here.front.explain(view)
        here.now += 3600 * 4
        assert here.front.blocks(view) == ""
        assert not blocking(replace(view, untold=False), StalenessSettings(), START + 6)


async def test_a_silent_build_that_outlived_a_long_pause_is_not_cut_off_before_it_is_looked_at() -> None:
    async with world() as here:
        name = (await here.start()).id
        here.host.running[name].cpu_s = 1.0
        await here.close()
        here.now += 5 * 3600
        here.host.looks = 0
        here._settings = SLOW
        await here.begin()
        await here.front.until_filled()
        assert "not known yet" in here.front.blocks(here.view(name))
        here.now += 4 * 3600  # nobody looks: it does not stay so
        assert not here.front.blocks(here.view(name))


async def test_a_forgotten_server_is_known_to_do_nothing_after_two_looks() -> None:
    async with world() as here:
        name = (await here.start()).id
        here.now += 5 * 3600
        await here.restart()
        await until(lambda: here.board.get(name) is not None and here.view(name).known)
        assert "it did nothing for 5 h" in here.front.explain(here.view(name))


async def test_input_that_cannot_be_noted_is_not_sent() -> None:
    async with world(SLOW) as here:
        name = (await here.start()).id
        here.host.refuse_input = OSError(28, "No space left on device")
        with pytest.raises(BadInputError, match="No space left"):
            await here.front.write(name, b"x")


async def test_a_process_whose_heartbeats_nobody_receives_blocks_no_reset() -> None:
    async with world() as here:
        name = (await here.start()).id
        here.deaf = True
        here.now += 3600
        here.host.running[name].out += b"busy\n"
        await until(lambda: here.board[name].view.active_at == here.now)
        assert here.view(name).active_at == START
        assert not here.front.blocks(here.view(name))
        assert "nothing was heard of it" in here.front.explain(here.view(name))
        here.deaf = False
        await until(lambda: bool(here.front.blocks(here.view(name))))


async def test_a_heartbeat_of_an_ended_or_forgotten_process_changes_nothing() -> None:
    async with world(SLOW) as here:
        first = await here.start()
        here.host.finish(first.id)
        ended = await here.ended(first.id)
        here.board.receive(Heartbeat(process=replace(first, active_at=START + 60)))
        assert here.view(first.id) == ended
        here.board.drop(first.id)
        here.board.receive(Heartbeat(process=first))
        assert here.front.views() == ()
