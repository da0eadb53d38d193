"""A simulated daemon: the real root, directory, sessions, process actors, reset clock, front desk, journal, hub,
runner and drain, on a loop of its own. Only the disk, processes, models, tools and the network are played.

It is put together as `hermes.app.composition` does it, and stopped in the reverse order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from loguru import logger
from pykka import ActorDeadError, ActorRef

from hermes.actors.after_reset import AfterReset
from hermes.actors.delivery.delivery import DeliveryActor
from hermes.actors.delivery.protocol import ForgetSession
from hermes.actors.directory import SessionDirectory
from hermes.actors.journal import ActorJournal
from hermes.actors.kernel.actor import _live, live_actors
from hermes.actors.kernel.future import LoopFuture
from hermes.actors.kernel.scheduler import Dispatcher
from hermes.actors.process_registry import ProcessRegistry
from hermes.actors.process_services import Announcement, NoticeLimit, NoticeSender, ProcessServices, ProcessSettings
from hermes.actors.process_supervisor import ForgetProcesses, ProcessSupervisor
from hermes.actors.reset_rules import ResetRules, ResetSettings
from hermes.actors.reset_scheduler import ResetClock
from hermes.adapters.chat.access import EVERYBODY, AccessControl
from hermes.adapters.chat.intake import SessionChatIntake
from hermes.adapters.chat.moved import MovedChats
from hermes.adapters.openai_api.turns.turn_watch import TurnWatch
from hermes.agent.models.model_set import ModelSet
from hermes.agent.runner import AgentRunner
from hermes.app import composition
from hermes.app.directory_configuration import DirectoryConfiguration
from hermes.app.factories.chat import DELIVERY
from hermes.app.factories.processes import NAME as PROCESSES
from hermes.app.shutdown_effects import DaemonShutdown, stop_actors
from hermes.config.settings import Config
from hermes.domain.access.role import Role
from hermes.domain.directory.settings import DirectorySettings
from hermes.domain.errors import HermesError, StorageFailedError
from hermes.domain.events import TurnAnswered
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.process.process_record import Heartbeat
from hermes.domain.records import Answered
from hermes.domain.session.protocol import TurnLimits
from hermes.domain.session.state import Phase, Session
from hermes.domain.submission import Receipt, Submission
from hermes.ports.chat import Inbound, Platform
from hermes.ports.given import IdSource
from hermes.services.event_hub import EventHub
from hermes.services.outbox import OutboxService
from hermes.services.processes import ProcessService
from hermes.services.sessions import SessionService
from hermes.supervision.boot import read_boot, started, stopped
from hermes.supervision.policy import RestartIntensity
from hermes.supervision.root import Children, ChildSpec, RootActor, ShutDown
from hermes.supervision.shutdown import StopRequest, StopTrigger
from tests.simulation.machine import Machine, VirtualThreads
from tests.simulation.minds import Minds
from tests.simulation.outside import Outside
from tests.simulation.request import Request
from tests.simulation.virtual_time import VirtualLoop, VirtualReaders, VirtualWriter
from tests.support.judge import Acknowledged, Erased, Sample, Told, Uncertain

QUIET_S = 5.0
ONE_MESSAGE_S = 1e-7  # less than any message takes: the actors' turns do not depend on how fast this machine is
STOP_S = 10.0  # the budget of a stop
ADMIN, USER = "chat0", "chat1"  # who else writes on the platform is a guest
SETTINGS = DirectorySettings(
    idle_after_s=20,
    max_live=3,
    limits=TurnLimits(max_queue=4, admins=frozenset({("toy", ADMIN)})),
    memory_limit_bytes=0,
    seen_for_s=86400 * 30,
    take_up=False,
)


class Nobody:
    """Of whom none was let in by pairing."""

    async def role(self, platform: str, user: str) -> Role | None:
        return None


def role_of(chat: str) -> Role:
    """With which somebody writes on the platform."""
    return {ADMIN: Role.ADMIN, USER: Role.USER}.get(chat, Role.GUEST)


class SimulatedDaemon:
    def __init__(
        self,
        outside: Outside,
        resets: ResetSettings,
        platform: Platform,
        machine: Machine,
        on_stopped: Callable[[SimulatedDaemon], None],
    ) -> None:
        self._outside = outside
        self._platform = platform
        self._machine = machine
        self._resets = resets
        self._on_stopped = on_stopped
        self.loop = VirtualLoop(outside.now, outside.complain)
        self.requests: dict[Request, None] = {}
        self.open = False
        self.holds = False  # it came up too often: turns that were cut off wait for their people
        self.children = Children()
        self.hub: EventHub
        self.desk: SessionService
        self.journal: ActorJournal
        self.agent: AgentRunner
        self._began = outside.now
        self._bugs = 0  # sessions that died of one; a stop may find them between two lives
        self._writer: VirtualWriter | None = None
        self._stop: asyncio.Future[StopRequest] = self.loop.create_future()
        self._requested_at = 0.0  # by the loop
        self._requested_at_wall = 0.0
        self._hindered = False
        self._run = self.loop.create_task(self._live(), name="daemon")
        self._run.add_done_callback(self._complain_of_its_end)

    # ------------------------------------------------------------ for the outside

    def accept(self, request: Request) -> None:
        """A connection."""
        if not self.open:
            request.lose()
            return
        self.requests[request] = None
        request.task = self.loop.create_task(self._serve(request), name=request.id)

    def stop(self, reason: str, cause: StopTrigger = StopTrigger.OPERATOR) -> None:
        if not self._stop.done():
            self._stop.set_result(StopRequest(reason=reason, cause=cause))

    def die(self) -> None:
        """As by `kill -9`."""
        if self._writer is not None:
            self._writer.die(kept=self._outside.chance.random() < 0.5)
        self._bury()

    def _bury(self) -> None:
        left = tuple(self.requests)
        _live.clear()
        self.loop.abandon()
        for request in left:
            request.lose()

    # ------------------------------------------------------------ from the start to the stop

    async def _live(self) -> None:
        Dispatcher.here().slice_s = ONE_MESSAGE_S
        workers: list[Callable[[], Awaitable[None]]] = []  # no stack, which would close what a killed one leaves
        root = await self._start(workers)
        shutdown = self._shutdown(workers)
        self.open = True
        request = await self._stop
        began = self._requested_at = self.loop.time()
        self._requested_at_wall = self._outside.wall()
        self._outside.note(f"stopping: {request.reason}")
        self._hindered = self._is_hindered()
        root.tell(ShutDown(request=request, effects=shutdown))
        await shutdown.finished
        await stop_actors(root)
        await self.journal.close()
        stood_still = self._outside.frozen_at > began
        took_s = 0.0 if stood_still else self.loop.time() - began
        limit = STOP_S * (1.5 if self._hindered else 1.0)  # the watchdog ends the real one when a disk is slow
        self._outside.history.add(Sample(what="seconds that a stop took", value=took_s, limit=limit))
        self._outside.later(0.0, self._is_gone)

    async def _close_servers(self) -> None:
        """Check what the drain left, then end the requests."""
        self.open = False
        self._hindered = self._hindered or self._is_hindered()
        if self._stop.result().exit_code == 0 and not self._hindered:
            self._look_for_marks()
            self._look_for_haste(self.loop.time() - self._requested_at, self._requested_at_wall)
        await self._end_requests()

    async def _start(self, workers: list[Callable[[], Awaitable[None]]]) -> ActorRef[RootActor]:
        outside = self._outside
        engine = outside.disk.open()
        self.journal = ActorJournal(
            engine, on_fatal=self._on_fatal, start_writer=self._start_writer, start_readers=self._start_readers
        )
        boot = await self.journal.fetch(lambda reader: read_boot(reader, outside.wall()))
        self.holds = boot.is_loop(Config().resume.boot_loop_starts)
        self.journal.commit(started(boot), lambda _: None)
        self.hub = EventHub()
        deliver = partial(composition._hand_to_delivery, self.children)
        rules = ResetRules(
            self._resets,
            processes=self._make_front(),
            clock=outside.wall,
            steady=self.loop.time,
            pulse=self.loop.time,
        )
        self.desk = SessionService(
            directory=lambda: self.children["directory"],
            journal=self.journal,
            clock=outside.wall,
            max_waiting=20,
            erased=self._forget,
            resets=rules.explain,
            deliver=deliver,
        )
        self._edge = SessionChatIntake(
            sessions=cast("Any", self.desk),
            outbox=OutboxService(self.journal, deliver),
            commands=cast("Any", None),  # nobody uses any there
            moved=MovedChats("toy", cast("Any", self.desk)),
            access=AccessControl(pairing=cast("Any", Nobody()), admins=(ADMIN,), allowed=(USER, EVERYBODY)),
            new_turn_id=lambda: TurnId(outside.number("turn")),
            clock=outside.wall,
            alive=lambda: None,
        )
        services = self._process_services()
        workers.append(services.courier.close)
        minds: Any = Minds(outside, self.hub, self.processes)
        self.agent = AgentRunner(
            models=ModelSet(()),
            thinking=minds,
            acting=minds,
            summarising=minds,
            max_concurrent=8,
            random=outside.chance.random,
        )
        workers.append(self.agent.close)
        after_reset = AfterReset(
            journal=self.journal, end_process=partial(self.processes.end, why="reset"), tell=self._tell_left
        )
        workers.append(after_reset.close)
        after_reset.take_up()
        self._directory = DirectoryConfiguration(self.children, SETTINGS)
        root = self._start_root(rules, after_reset, deliver, services)
        await self.processes.until_filled()
        self._directory.hold(boot_loop=self.holds)
        self._directory.set(replace(SETTINGS, take_up=True))
        outside.note("ready")
        return root

    def _start_root(
        self,
        rules: ResetRules,
        after_reset: AfterReset,
        deliver: Callable[[Sequence[OutboxMessage]], None],
        services: ProcessServices,
    ) -> ActorRef[RootActor]:
        outside = self._outside
        delivery = partial(
            DeliveryActor.start,
            platforms={self._platform.name: self._platform},
            journal=self.journal,
            hub=self.hub,
            clock=outside.wall,
            jitter=outside.chance.random,
            name=DELIVERY,
        )
        directory = partial(
            SessionDirectory.start,
            journal=self.journal,
            agent=self._fallible(self.agent),
            hub=self.hub,
            clock=outside.wall,
            identity=IdSource(session=self._new_session, turn=lambda: TurnId(outside.number("turn"))),
            restart_policy=RestartIntensity(),
            memory_bytes=lambda: 0,
            resets=rules,
            was_reset=after_reset,
            deliver=deliver,
            name="directory",
        )
        clock = partial(
            ResetClock.start,
            rules=rules,
            journal=self.journal,
            directory=lambda: self.children["directory"],
            clock=outside.wall,
            name="resets",
        )
        processes = partial(
            ProcessSupervisor.start,
            services,
            new_id=lambda: outside.number("process"),
            restart_policy=RestartIntensity(),
            name=PROCESSES,
        )
        return RootActor.start(
            (
                ChildSpec(name=DELIVERY, start=lambda owner: delivery(owner=owner)),
                ChildSpec(
                    name="directory", start=lambda owner: directory(owner=owner, settings=self._directory.settings)
                ),
                ChildSpec(name=PROCESSES, start=lambda owner: processes(owner=owner)),
                ChildSpec(name="resets", start=lambda owner: clock(owner=owner)),
            ),
            children=self.children,
            policy=RestartIntensity(),
            clock=outside.wall,
            report=lambda name, problem, said: outside.note(f"{name} died: {said}"),
            name="root",
        )

    # ------------------------------------------------------------ background processes

    def _make_front(self) -> ProcessService:
        self._threads = cast("Any", VirtualThreads(loop=self.loop, delay=self._outside.disk.delay_s))
        self._board = ProcessRegistry()
        self.processes = ProcessService(
            supervisor=lambda: self.children[PROCESSES],
            host=self._machine,
            threads=self._threads,
            board=self._board,
            journal=self.journal,
            clock=self._outside.wall,
            settings=ProcessSettings(),
        )
        return self.processes

    def _process_services(self) -> ProcessServices:
        return ProcessServices(
            host=self._machine,
            threads=self._threads,
            courier=NoticeSender(self.desk.submit, self._announce),
            board=self._board,
            journal=self.journal,
            clock=self._outside.wall,
            notices=NoticeLimit(),
            settings=lambda: self.processes.settings,
            new_turn=lambda: TurnId(self._outside.number("turn")),
            send_heartbeat=self._tell_directory,
            publish=self.hub.publish,
        )

    def _tell_directory(self, heartbeat: Heartbeat) -> None:
        with suppress(ActorDeadError):
            self.children["directory"].tell(heartbeat)

    async def _announce(self, said: Announcement) -> None:
        _, process, _ = said.id.split(":")
        self._outside.note(f"announced {said.id}")
        self._outside.history.add(Told(process=process, late=True))

    async def _forget(self, session: SessionId) -> None:
        with suppress(ActorDeadError):
            self.children[PROCESSES].tell(ForgetProcesses(session=session))
        with suppress(ActorDeadError):
            self.children[DELIVERY].tell(ForgetSession(session=session))

    def _shutdown(self, workers: list[Callable[[], Awaitable[None]]]) -> DaemonShutdown:
        """The real effects, without a service manager and a watchdog."""

        async def close_workers() -> None:
            for close in reversed(workers):
                await close()

        return DaemonShutdown(
            config=Config(),
            operations=cast("Any", SimpleNamespace(set_stopping=lambda _: None, has_service_manager=False)),
            sessions=self.desk,
            runner=self.agent,
            children=self.children,
            processes=self.processes,
            epoch=self.journal.epoch,
            close_servers=self._close_servers,
            close_workers=close_workers,
            write_clean_marker=self._mark_stopped,
        )

    def _fallible(self, agent: AgentRunner) -> Any:
        """The runner; now and then whoever gives it work meets a bug and dies of it."""

        def think(*args: Any) -> Any:
            if self._outside.happens(0.01):
                self._bugs += 1
                raise RuntimeError("a simulated bug")
            return agent.think(*args)

        return SimpleNamespace(think=think, act=agent.act, summarise=agent.summarise)

    def _new_session(self, now: float) -> SessionId:
        return SessionId(self._outside.number("session"))

    async def _tell_left(self, ended: Session, left: str) -> None:
        await asyncio.sleep(self._outside.chance.uniform(0.0, 1.0))
        self._outside.note(f"after the reset of {ended.id}: {left}")

    # ------------------------------------------------------------ the journal's threads

    def _start_writer(self, *args: Any, **kwargs: Any) -> VirtualWriter:
        disk = self._outside.disk
        self._writer = VirtualWriter(*args, loop=self.loop, delay=disk.delay_s, moment=self._outside.moment, **kwargs)
        return self._writer

    def _start_readers(self, name: str) -> VirtualReaders:
        return VirtualReaders(loop=self.loop, delay=self._outside.disk.delay_s, during=self._reading)

    def _reading(self, begins: bool) -> None:
        self._outside.disk.is_read = begins

    def _on_fatal(self, error: StorageFailedError) -> None:
        self._outside.note("the disk failed")
        self.stop("storage failed", StopTrigger.STORAGE_FAILURE)

    # ------------------------------------------------------------ requests

    async def _serve(self, request: Request) -> None:
        try:
            request.reply("done", await request.work(self, request))
        except HermesError as error:
            request.reply("refused", error)
        # The outermost edge: what else goes wrong there must not happen at all.
        except Exception as error:  # noqa: BLE001
            logger.opt(exception=error).error("a simulated request failed")
            self._outside.complain(f"a request failed with {error!r}")
            request.reply("lost", None)
        finally:
            self.requests.pop(request, None)

    async def chat(self, request: Request, submission: Submission) -> object:
        """Take a message and wait for its outcome, as the API does."""
        outside = self._outside
        feed = self.hub.subscribe(turn=submission.turn)
        watch = None
        try:
            receipt: Receipt = await self.desk.submit(submission)
            acknowledged = Acknowledged(
                inbound=str(submission.inbound), at=outside.time(), session=receipt.session, turn=receipt.turn
            )
            outside.history.add(acknowledged)
            outside.note(f"acknowledged {submission.inbound} {receipt.turn} {receipt.handling}")
            request.reply("receipt", receipt)
            watch = TurnWatch(cast("Any", self.desk), self.hub, receipt, feed, quiet_s=QUIET_S)
            outcome = await watch.outcome()
            if isinstance(outcome, TurnAnswered):
                outside.note(f"answered {outcome.turn} {outcome.text}")
            return receipt, outcome
        finally:
            (watch or feed).close()

    async def take(self, inbound: Inbound) -> None:
        """What came from the chat platform: when this returns, it is confirmed there."""
        await self._edge.take(inbound)
        outside = self._outside
        seen = outside.disk.seen(inbound.id)
        if seen is not None:  # else it was refused, and its person is told
            outside.note(f"confirmed {inbound.text} {seen.turn}")
            outside.history.add(
                Acknowledged(inbound=inbound.text, at=outside.time(), session=seen.session, turn=seen.turn)
            )

    async def press(self, inbound: Inbound) -> None:
        """A button on the chat platform. What is wrong with it is told to whoever pressed it, and to nobody else."""
        self._outside.note(f"pressed by {inbound.user}: {await self._edge.take(inbound)}")

    def require_stored(self, granted: Session) -> None:
        """What somebody is told of a session is on disk, unless it has no message yet or was deleted since."""
        outside = self._outside
        stored = {row.id: row.next_seq for row in outside.disk.sessions()}.get(granted.id, 1)
        if stored < granted.next_seq and Erased(session=granted.id) not in outside.history.happenings:
            outside.complain(f"{granted.id} is told to be at {granted.next_seq}; on disk it is at {stored}")

    def hang_up(self, request: Request) -> None:
        """The client leaves: its handler ends, but not the turn."""
        if request in self.requests and request.task is not None:
            request.task.cancel()

    # ------------------------------------------------------------ on the way out

    async def _mark_stopped(self, request: StopRequest) -> None:
        done = LoopFuture()
        self.journal.commit(stopped(request.announced), done.set)
        await done

    async def _end_requests(self) -> None:
        for request in tuple(self.requests):
            self.hang_up(request)
            request.lose()
        await asyncio.sleep(0)

    def _is_hindered(self) -> bool:
        disk = self._outside.disk
        return disk.full or disk.slow or disk.failed or bool(disk.unreadable)

    def _look_for_marks(self) -> None:
        """What this daemon had begun and what runs on when the drain is over is marked on disk."""
        disk = self._outside.disk
        begun = (row for row in disk.sessions() if disk.begun_at.get(row.id, 0.0) > self._began)
        unmarked = [row.id for row in begun if row.phase == Phase.RUNNING and not row.resume_reason]
        self._outside.history.add(
            Sample(what=f"unmarked work after a drain {unmarked}", value=len(unmarked), limit=self._bugs)
        )

    def _look_for_haste(self, took_s: float, asked_at: float) -> None:
        """While there is time to drain, no turn is cut off, unless it waited for a person, who came meanwhile."""
        disk = self._outside.disk

        def was_answered(session: SessionId) -> bool:
            records = [entry.record for entry in disk.log(session)]
            return any(isinstance(each, Answered) and each.at >= asked_at for each in records)

        running = {row.id for row in disk.sessions() if row.phase == Phase.RUNNING} & {*self.agent.busy}
        in_time = took_s < Config().shutdown.drain_s
        cut_off = [each for each in running if in_time and not was_answered(each)]
        self._outside.history.add(
            Sample(what=f"work cut off by a drain of {took_s:.2f} s {cut_off}", value=len(cut_off), limit=self._bugs)
        )

    def _complain_of_its_end(self, run: asyncio.Task[None]) -> None:
        if not run.cancelled() and (error := run.exception()) is not None:
            self._outside.complain(f"the daemon ended with {error!r}")

    def _is_gone(self) -> None:
        """Check that a complete stop leaves nothing."""
        history = self._outside.history
        history.add(Sample(what="actors after a stop", value=len(live_actors()), limit=0))
        cut_off = [
            outgoing for outgoing in self._outside.disk.outbox() if outgoing.sending
        ]  # the stop did not wait for these
        history.add(*[Uncertain(at=self._outside.now)] * len(cut_off))
        left = [task.get_name() for task in asyncio.all_tasks(self.loop)]
        history.add(Sample(what=f"tasks after a stop {left}", value=len(left), limit=0))
        self._bury()
        self._on_stopped(self)
