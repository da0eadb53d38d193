"""Actor system: `assemble` makes every actor and service from ports.

The daemon, the embedded chat, the simulation and the test harnesses use it, so that what is tested is what runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from hermes.actors.delivery.delivery import DeliveryActor
from hermes.actors.delivery.delivery_protocol import Deliveries, ForgetSession
from hermes.actors.directory import SessionDirectory
from hermes.actors.directory_protocol import Configure
from hermes.actors.kernel.actor import live_actors
from hermes.actors.kernel.ref import ActorDeadError, ActorRef
from hermes.actors.process.process_notice import RESET
from hermes.actors.process.process_registry import ProcessRegistry
from hermes.actors.process.process_services import (
    HostThreads,
    NoticeLimit,
    NoticeSender,
    ProcessServices,
    ProcessSettings,
)
from hermes.actors.process.process_supervisor import ForgetProcesses, ProcessSupervisor
from hermes.actors.reset.after_reset import AfterReset
from hermes.actors.reset.reset_rules import ResetRules, ResetSettings
from hermes.actors.reset.reset_scheduler import EVERY_S, PolicyChanged, ResetClock
from hermes.actors.session.live_heads import LiveHeads
from hermes.adapters.chat.secret_masking import SecretMaskingPlatform
from hermes.adapters.chat.services import ChatServices
from hermes.app.job_system import SCHEDULER, JobSystem, default_job_settings
from hermes.domain.cause.cause import HoldCause
from hermes.domain.directory.directory_settings import DirectorySettings
from hermes.domain.events import ActorFailed
from hermes.domain.ids import SessionId
from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.process.process_record import Heartbeat
from hermes.domain.retention import outlook
from hermes.domain.session.state import Session
from hermes.ports.agent import Agent
from hermes.ports.chat import Platform
from hermes.ports.given import Clock, IdSource
from hermes.ports.job.jobs import JobSettings
from hermes.ports.processes import ProcessHost
from hermes.ports.storage import Journal
from hermes.ports.supervision import RestartPolicy
from hermes.services.children.child_service import ChildService
from hermes.services.children.delegations import DelegationService
from hermes.services.event_hub import EventHub
from hermes.services.home import HomeService
from hermes.services.inner_calls import InnerCallService
from hermes.services.notices import NoticeService
from hermes.services.outbox import OutboxService
from hermes.services.pairing import GAP, PairingService
from hermes.services.processes import ProcessService
from hermes.services.sessions import SessionService
from hermes.supervision.restart_policy import RestartIntensity
from hermes.supervision.root import Children, ChildSpec, RootActor, StopChildren

DELIVERY, DIRECTORY, PROCESSES, RESETS = "delivery", "directory", "processes", "resets"  # children of the root
_FRESH_AFTER_S = 60.0  # an answer that grew for longer ends as a new message, which notifies people
_GRACE_S = 1.0

StartActor: TypeAlias = Callable[..., ActorRef[Any]]  # takes the owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The world outside the actors."""

    journal: Journal
    hub: EventHub
    host: ProcessHost
    threads: HostThreads  # for calls of the host
    registry: ProcessRegistry
    platforms: Mapping[str, Platform]
    clock: Clock  # wall clock
    steady: Clock  # monotonic clock
    pulse: Clock  # monotonic clock that stops while the daemon is frozen
    random: Callable[[], float]
    ids: IdSource
    erase: Callable[[SessionId], Awaitable[None]]  # deletes what is kept of a session besides its records
    redact: Callable[[str], str] = str
    restart_policy: RestartPolicy = field(default_factory=RestartIntensity)


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemSettings:
    directory: DirectorySettings
    resets: ResetSettings
    processes: ProcessSettings
    max_waiting: int = 10_000  # messages on their way to disk
    reset_every_s: float = EVERY_S  # between two ticks of the reset clock
    jobs: JobSettings = field(default_factory=default_job_settings)
    keep_s: float | None = None  # for which an unused conversation is kept; None: forever


def _fate(rules: ResetRules, keep_s: float | None, session: Session) -> str:
    """Return in words when the session is reset, and when its conversation is deleted."""
    return "\n".join(filter(None, (rules.explain(session), outlook(session, keep_s))))


def assemble(ports: Ports, settings: SystemSettings) -> ActorSystem:
    """Make the services and connect them. `ActorSystem.start` starts the actors."""
    journal, clock, children = ports.journal, ports.clock, Children()
    deliver = partial(_hand_to_delivery, children)
    processes = ProcessService(
        supervisor=lambda: children[PROCESSES],
        host=ports.host,
        threads=ports.threads,
        board=ports.registry,
        journal=journal,
        clock=clock,
        settings=settings.processes,
    )
    rules = ResetRules(settings.resets, processes=processes, clock=clock, steady=ports.steady, pulse=ports.pulse)
    heads = LiveHeads()
    sessions = SessionService(
        directory=lambda: children[DIRECTORY],
        journal=journal,
        clock=clock,
        max_waiting=settings.max_waiting,
        erased=partial(_forget, children, ports.erase),
        resets=partial(_fate, rules, settings.keep_s),
        deliver=deliver,
        live=heads.get,
    )
    outbox = OutboxService(journal, deliver, clock=clock, delivery=lambda: children[DELIVERY])
    names = tuple(ports.platforms)
    homes = HomeService(names, sessions=sessions, outbox=outbox, clock=clock)
    pairing = PairingService(sessions=sessions, outbox=outbox, clock=clock)
    child_sessions = ChildService(sessions=sessions, journal=journal, hub=ports.hub, deliver=deliver)
    jobs = JobSystem(
        settings.jobs,
        sessions=sessions,
        homes=homes,
        child_sessions=child_sessions,
        children=children,
        platforms=names,
        journal=journal,
        clock=clock,
        steady=ports.steady,
    )
    notices = NoticeService(hub=ports.hub, journal=journal, outbox=outbox, clock=clock)
    delegations = DelegationService(
        sessions=sessions, journal=journal, hub=ports.hub, children=child_sessions, live=heads.get
    )
    ports.hub.on(child_sessions.NOTED, child_sessions.note)
    ports.hub.on(delegations.NOTED, delegations.note)
    return ActorSystem(
        ports=ports,
        settings=settings,
        children=children,
        deliver=deliver,
        heads=heads,
        processes=processes,
        rules=rules,
        sessions=sessions,
        outbox=outbox,
        chat=ChatServices(
            platforms=names, pairing=pairing, homes=homes, outbox=outbox, clock=clock, sessions=sessions
        ),
        notices=notices,
        child_sessions=child_sessions,
        delegations=delegations,
        jobs=jobs,
        inner_calls=InnerCallService(sessions, ports.hub),
        notice_sender=NoticeSender(sessions.submit, notices.announce),
        after_reset=AfterReset(
            journal=journal, end_process=partial(processes.end, why=RESET), tell=partial(_tell_left, homes)
        ),
    )


@dataclass(slots=True, kw_only=True)
class ActorSystem:
    """Services, and the actors below the root once `start` was called."""

    ports: Ports
    settings: SystemSettings
    children: Children
    deliver: Callable[[Sequence[OutboxMessage]], None]
    heads: LiveHeads
    processes: ProcessService
    rules: ResetRules
    sessions: SessionService
    outbox: OutboxService
    chat: ChatServices
    notices: NoticeService
    notice_sender: NoticeSender
    after_reset: AfterReset
    child_sessions: ChildService
    delegations: DelegationService
    jobs: JobSystem
    inner_calls: InnerCallService
    root: ActorRef[RootActor] | None = None
    _boot_loop: bool = False

    # ------------------------------------------------------------ start and stop

    def start(
        self,
        agent: Agent,
        *,
        connections: Sequence[ChildSpec] = (),
        without: Collection[str] = (),
        memory_bytes: Callable[[], int] = lambda: 0,
    ) -> ActorRef[RootActor]:
        """Start the root, which starts its children in this order. `without` leaves some of them out."""
        starts = {
            DELIVERY: self._delivery(),
            DIRECTORY: self._directory(agent, memory_bytes),
            PROCESSES: self._processes(),
            RESETS: self._reset_clock(),
            SCHEDULER: self.jobs.scheduler(),
        }
        if RESETS not in without:
            self.after_reset.take_up()
        specs = [_spec(name, start) for name, start in starts.items() if name not in without]
        self.root = RootActor.start(
            (*specs, *connections),
            children=self.children,
            policy=self.ports.restart_policy,
            clock=self.ports.clock,
            report=self._report_failure,
            name="root",
        )
        return self.root

    async def stop(self) -> None:
        """Stop the root after a shutdown, or the root and its children after a start that failed."""
        if self.root is not None:
            with suppress(ActorDeadError):
                await self.root.ask(StopChildren(), block=False)
                await self.root.stop(block=False)
        await self.until_actors_ended(left=0)

    async def until_actors_ended(self, *, left: int) -> None:
        """Wait until at most `left` actors run. Sessions end a few rounds of the loop after their directory."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _GRACE_S
        while len(live_actors()) > left and loop.time() < deadline:  # noqa: ASYNC110 - within a few rounds
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Cancel what services do in the background. Called when the actors have ended."""
        await self.after_reset.close()
        await self.child_sessions.close()
        await self.jobs.close()
        await self.notice_sender.close()

    # ------------------------------------------------------------ settings

    def configure(self, settings: SystemSettings) -> None:
        """Apply settings to the running parts. An actor that is restarting starts with them."""
        self.settings = settings
        self.processes.settings = settings.processes
        self.rules.settings = settings.resets
        self.jobs.configure(settings.jobs)
        self._configure_directory()
        with suppress(ActorDeadError):
            self.children[RESETS].tell(PolicyChanged())

    def take_up(self) -> None:
        """Continue the work that earlier boots left open."""
        self.settings = replace(self.settings, directory=replace(self.settings.directory, take_up=True))
        self._configure_directory()
        if not self._boot_loop:
            self.child_sessions.take_up()
            self.jobs.open()

    def hold(self, *, boot_loop: bool) -> None:
        """In a boot loop, interrupted turns wait for a message, and child sessions and jobs for its end."""
        was_loop, self._boot_loop = self._boot_loop, boot_loop
        self._configure_directory()
        if was_loop and not boot_loop:
            self.child_sessions.take_up(held=not self.directory_settings.hold)
            self.jobs.open()

    @property
    def directory_settings(self) -> DirectorySettings:
        configured = self.settings.directory
        return replace(configured, hold=HoldCause.CRASHES if self._boot_loop else configured.hold)

    def _configure_directory(self) -> None:
        with suppress(ActorDeadError):
            self.children[DIRECTORY].tell(Configure(settings=self.directory_settings))

    # ------------------------------------------------------------ children of the root

    def _delivery(self) -> StartActor:
        fill = self.chat.pairing.fill
        return partial(
            DeliveryActor.start,
            platforms={
                name: SecretMaskingPlatform(platform, gap=GAP, fill=fill)
                for name, platform in self.ports.platforms.items()
            },
            journal=self.ports.journal,
            hub=self.ports.hub,
            clock=self.ports.clock,
            jitter=self.ports.random,
            fresh_after_s=_FRESH_AFTER_S,
        )

    def _directory(self, agent: Agent, memory_bytes: Callable[[], int]) -> StartActor:
        def start(**named: Any) -> ActorRef[Any]:
            return SessionDirectory.start(
                settings=self.directory_settings,
                journal=self.ports.journal,
                agent=agent,
                hub=self.ports.hub,
                clock=self.ports.clock,
                identity=self.ports.ids,
                restart_policy=self.ports.restart_policy,
                memory_bytes=memory_bytes,
                resets=self.rules,
                was_reset=self.after_reset,
                deliver=self.deliver,
                start_children=self.child_sessions.start,
                heads=self.heads.restart(),
                **named,
            )

        return start

    def _processes(self) -> StartActor:
        ports = self.ports
        services = ProcessServices(
            host=ports.host,
            threads=ports.threads,
            notice_sender=self.notice_sender,
            board=ports.registry,
            journal=ports.journal,
            clock=ports.clock,
            notices=NoticeLimit(),
            settings=lambda: self.processes.settings,
            new_turn=ports.ids.turn,
            send_heartbeat=self._send_heartbeat,
            redact=ports.redact,
            publish=ports.hub.publish,
        )
        return partial(
            ProcessSupervisor.start, services, new_id=ports.ids.process, restart_policy=ports.restart_policy
        )

    def _reset_clock(self) -> StartActor:
        return partial(
            ResetClock.start,
            rules=self.rules,
            journal=self.ports.journal,
            directory=lambda: self.children[DIRECTORY],
            clock=self.ports.clock,
            every_s=self.settings.reset_every_s,
        )

    def _send_heartbeat(self, heartbeat: Heartbeat) -> None:
        with suppress(ActorDeadError):  # restarting: the next heartbeat comes in seconds
            self.children[DIRECTORY].tell(heartbeat)

    def _report_failure(self, name: str, problem: str, verdict: str) -> None:
        self.ports.hub.publish(ActorFailed(name=name, problem=problem, verdict=verdict))


def _spec(name: str, start: StartActor) -> ChildSpec:
    return ChildSpec(name=name, start=lambda owner: start(name=name, owner=owner))


def _hand_to_delivery(children: Children, outgoing: Sequence[OutboxMessage]) -> None:
    with suppress(ActorDeadError):  # restarting: the next one reads the outbox
        children[DELIVERY].tell(Deliveries(outgoing=outgoing))


async def _forget(children: Children, erase: Callable[[SessionId], Awaitable[None]], session: SessionId) -> None:
    """Delete what is kept of a session besides its records."""
    with suppress(ActorDeadError):
        children[PROCESSES].tell(ForgetProcesses(session=session))
    with suppress(ActorDeadError):
        children[DELIVERY].tell(ForgetSession(session=session))
    await erase(session)


async def _tell_left(homes: HomeService, session: Session, left: str) -> None:
    text = f"Session {session.id}, which has no chat, was reset: {left}"
    await homes.tell(f"reset:{session.id}:{session.next_seq}", text)
