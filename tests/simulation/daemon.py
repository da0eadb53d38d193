"""Simulated daemon: the actor system of the real one, its journal, runner and shutdown, on a loop of its own.

The disk, processes, models, tools and the network are played.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast, get_args

from loguru import logger

from hermes.actors.journal import ActorJournal
from hermes.actors.kernel.actor import _live, live_actors
from hermes.actors.kernel.scheduler import Dispatcher
from hermes.actors.process.process_registry import ProcessRegistry
from hermes.actors.process.process_services import ProcessSettings
from hermes.actors.reset.reset_rules import ResetSettings
from hermes.adapters.chat.access import EVERYBODY, AccessControl
from hermes.adapters.chat.intake import SessionChatIntake
from hermes.adapters.chat.moved import MovedChats
from hermes.adapters.openai_api.turns.turn_watch import TurnWatch
from hermes.agent.models.model_set import ModelSet
from hermes.agent.runner import AgentRunner
from hermes.app.actor_system import DIRECTORY, ActorSystem, Ports, SystemSettings, assemble
from hermes.app.boot_record import BootRecord
from hermes.app.shutdown_effects import DaemonShutdown
from hermes.config.settings import Config
from hermes.domain.access.role import Role
from hermes.domain.directory.directory_settings import DirectorySettings
from hermes.domain.errors import HermesError, StorageFailedError
from hermes.domain.events import ActorFailed, Event, Notice, TurnAnswered
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.records import Answered, MessageReceived
from hermes.domain.session.protocol import TurnLimits
from hermes.domain.session.state import Phase, Session
from hermes.domain.turn.submission import Receipt, Submission
from hermes.ports.chat import Inbound, Platform
from hermes.ports.given import IdSource
from hermes.services.event_hub import EventHub
from hermes.services.sessions import SessionService
from hermes.supervision.root import Children, ShutDown
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


def note_event(outside: Outside, event: Event) -> None:
    """Note failures of actors, and notices of the ends of processes whose conversation is over."""
    if isinstance(event, ActorFailed):
        outside.note(f"{event.name} died: {event.verdict}")
    elif isinstance(event, Notice):
        for process in outside.disk.processes():
            if event.text.endswith(f": {process.command}"):  # each has a command of its own
                outside.note(f"announced {process.id}")
                outside.history.add(Told(process=process.id, late=True))


async def _keep_nothing_else(_: SessionId) -> None:
    """Of a session: there are its records alone."""


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
        self._settings = SystemSettings(
            directory=SETTINGS, resets=resets, processes=ProcessSettings(), max_waiting=20
        )
        self._on_stopped = on_stopped
        self.loop = VirtualLoop(outside.now, outside.complain)
        self.requests: dict[Request, None] = {}
        self.open = False
        self.holds = False  # it came up too often: turns that were cut off wait for their people
        self.children = Children()
        self.system: ActorSystem
        self.hub: EventHub
        self.desk: SessionService
        self.journal: ActorJournal
        self.agent: AgentRunner
        self._began = outside.now
        self._failures = 0  # of actors; a stop may find them while they restart
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
        boot_record = await self._start(workers)
        shutdown = self._shutdown(workers, boot_record)
        self.open = True
        request = await self._stop
        began = self._requested_at = self.loop.time()
        self._requested_at_wall = self._outside.wall()
        self._outside.note(f"stopping: {request.reason}")
        self._hindered = self._is_hindered()
        assert self.system.root is not None
        self.system.root.tell(ShutDown(request=request, effects=shutdown))
        await shutdown.finished
        await self.system.stop()
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

    async def _start(self, workers: list[Callable[[], Awaitable[None]]]) -> BootRecord:
        outside = self._outside
        self.journal = ActorJournal(
            outside.disk.open(),
            on_fatal=self._on_fatal,
            start_writer=self._start_writer,
            start_readers=self._start_readers,
        )
        boot_record = await BootRecord.begin(self.journal, outside.wall)
        self.holds = boot_record.boot.is_loop(Config().resume.boot_loop_starts)
        system = self.system = assemble(self._ports(), self._settings)
        self.hub, self.desk, self.children = system.ports.hub, system.sessions, system.children
        workers.append(system.close)
        self._prepare(system)
        self._edge = SessionChatIntake(
            sessions=system.sessions,
            outbox=system.outbox,
            commands=cast("Any", None),  # nobody uses any there
            moved=MovedChats(self._platform.name, system.sessions),
            access=AccessControl(pairing=system.chat.pairing, admins=(ADMIN,), allowed=(USER, EVERYBODY)),
            new_turn_id=system.ports.ids.turn,
            clock=outside.wall,
            alive=lambda: None,
        )
        minds: Any = self._minds(system)
        self.agent = AgentRunner(
            models=ModelSet(()),
            thinking=minds,
            acting=minds,
            summarising=minds,
            max_concurrent=8,
            random=outside.chance.random,
        )
        workers.append(self.agent.close)
        system.start(self._fallible(self.agent))
        await system.processes.until_filled()
        system.hold(boot_loop=self.holds)
        system.take_up()
        outside.note("ready")
        return boot_record

    def _minds(self, system: ActorSystem) -> Minds:
        return Minds(self._outside, system.ports.hub, system.processes)

    def _prepare(self, system: ActorSystem) -> None:
        """Add what only some simulations have."""

    def _ports(self) -> Ports:
        outside, hub = self._outside, EventHub()
        hub.on(get_args(Event), self._note)
        return Ports(
            journal=self.journal,
            hub=hub,
            host=self._machine,
            threads=cast("Any", VirtualThreads(loop=self.loop, delay=outside.disk.delay_s)),
            registry=ProcessRegistry(),
            platforms={self._platform.name: self._platform},
            clock=outside.wall,
            steady=self.loop.time,
            pulse=self.loop.time,
            random=outside.chance.random,
            ids=IdSource(
                session=lambda _: SessionId(outside.number("session")),
                turn=lambda: TurnId(outside.number("turn")),
                process=lambda: outside.number("process"),
            ),
            erase=_keep_nothing_else,
        )

    def _shutdown(self, workers: list[Callable[[], Awaitable[None]]], boot_record: BootRecord) -> DaemonShutdown:
        """The real effects, without a service manager and a watchdog."""

        async def close_workers() -> None:
            for close in reversed(workers):
                await close()

        return DaemonShutdown(
            config=Config(),
            system=self.system,
            runner=self.agent,
            operations=cast("Any", SimpleNamespace(set_stopping=lambda _: None, has_service_manager=False)),
            close_servers=self._close_servers,
            close_workers=close_workers,
            write_clean_marker=boot_record.write_clean_marker,
        )

    def _fallible(self, agent: AgentRunner) -> Any:
        """The runner; now and then whoever gives it work meets a bug and dies of it."""

        def think(*args: Any) -> Any:
            if self._outside.happens(0.01):
                raise RuntimeError("a simulated bug")
            return agent.think(*args)

        return SimpleNamespace(think=think, act=agent.act, summarise=agent.summarise)

    def _note(self, event: Event) -> None:
        self._failures += isinstance(event, ActorFailed)
        note_event(self._outside, event)

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
            watch = TurnWatch(self.desk, self.hub, receipt, feed, quiet_s=QUIET_S)
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

    async def _end_requests(self) -> None:
        for request in tuple(self.requests):
            self.hang_up(request)
            request.lose()
        await asyncio.sleep(0)

    def _is_hindered(self) -> bool:
        """Return whether a stop can mark less: by a bad disk, or without the directory, which a bad disk parked."""
        disk = self._outside.disk
        is_parked = DIRECTORY in self.system.children.parked
        return disk.full or disk.slow or disk.failed or bool(disk.unreadable) or is_parked

    def _look_for_marks(self) -> None:
        """What this daemon had begun and what runs on when the drain is over is marked on disk."""
        disk = self._outside.disk
        begun = (row for row in disk.sessions() if disk.begun_at.get(row.id, 0.0) > self._began)
        unmarked = [row.id for row in begun if row.phase == Phase.RUNNING and not row.resume_reason]
        self._outside.history.add(
            Sample(what=f"unmarked work after a drain {unmarked}", value=len(unmarked), limit=self._failures)
        )

    def _look_for_haste(self, took_s: float, asked_at: float) -> None:
        """While there is time to drain, no turn is cut off, unless a person wrote or answered meanwhile."""
        disk = self._outside.disk

        def was_answered(session: SessionId) -> bool:
            records = [entry.record for entry in disk.log(session)]
            return any(isinstance(each, Answered | MessageReceived) and each.at >= asked_at for each in records)

        running = {row.id for row in disk.sessions() if row.phase == Phase.RUNNING} & {*self.agent.busy}
        in_time = took_s < Config().shutdown.drain_s
        cut_off = [each for each in running if in_time and not was_answered(each)]
        self._outside.history.add(
            Sample(
                what=f"work cut off by a drain of {took_s:.2f} s {cut_off}", value=len(cut_off), limit=self._failures
            )
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
