"""The composition root: `running` starts everything in order and stops it in reverse; `run` is the process around it.

This is the only place that knows every part. It decides nothing about conversations.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import shutil
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from loguru import logger
from pykka import ActorDeadError, ActorRef

from hermes import __version__, wall_clock
from hermes.actors.after_reset import AfterReset
from hermes.actors.delivery import ForgetSession, Say, Settle
from hermes.actors.directory import SessionDirectory
from hermes.actors.directory_protocol import AnnounceStopToAll, Configure, DirectorySettings
from hermes.actors.front_desk import FrontDesk
from hermes.actors.future import LoopFuture
from hermes.actors.hub import EventHub
from hermes.actors.journal import ActorJournal
from hermes.actors.loop import live_actors
from hermes.actors.outgoing import ObligationDesk
from hermes.actors.process_desk import ForgetProcesses
from hermes.actors.process_front import ProcessFront
from hermes.actors.process_wording import RESET, STOPPED
from hermes.actors.reset_clock import EVERY_S, PolicyChanged, ResetClock
from hermes.actors.reset_rules import ResetRules
from hermes.actors.session_protocol import Limits
from hermes.agent.acting import Folders
from hermes.agent.personality import PERSONALITIES
from hermes.assembly import (
    AgentParts,
    Prepared,
    folders_of,
    make_agent,
    make_models,
    make_workshop,
    process_settings,
)
from hermes.chat_assembly import (
    DELIVERY,
    adapter_spec,
    delivery_spec,
    keep_homes_posted,
    make_adapters,
    make_office,
    make_watch,
    tell_left,
)
from hermes.commands.desk import CommandDesk
from hermes.config import load_config
from hermes.crash_point import reach
from hermes.errors import ConfigError, HermesError
from hermes.events import ActorFailed
from hermes.home import Home, lock, note_store, prepare
from hermes.log import configure_logging, redact
from hermes.media_assembly import make_reception
from hermes.notify import Notifier
from hermes.operations import EXIT_STORAGE, DaemonOperations, StopRequest, StopSwitch
from hermes.os_process import LoopComplaints, connections_within, hide_from_children, raise_descriptor_limit
from hermes.ports import Identity
from hermes.process_assembly import NAME as PROCESSES
from hermes.process_assembly import ProcessParts, open_processes
from hermes.reset_assembly import LateViews, reset_settings
from hermes.search.desk import SearchDesk
from hermes.secret import api_key_path, ensure_api_key, given_api_key
from hermes.session_id import new_session_id
from hermes.settings import Config
from hermes.signals import STOP_SIGNALS, handle_signals
from hermes.stop_budget import patience_s, within
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.storage.verify import verify
from hermes.supervision.boot import LOOP_WITHIN_S, Boot, read_boot, started, stopped
from hermes.supervision.policy import RestartIntensity
from hermes.supervision.root import Children, ChildSpec, RootActor, StopChildren
from hermes.types import Busy, Obligation, Session, SessionId, TurnId

if TYPE_CHECKING:
    from hermes.adapters.chat.home_desk import HomeDesk
    from hermes.adapters.openai_api.server import ApiServer

EXIT_TRY_AGAIN = 75
_GRACE_S = 1.0
_TICK_S = 0.01
_HELD = "held, since the daemon keeps crashing"
_PROGRESS_S = 1.0  # between two looks at how a drain goes on


def run(home: Home, config: Config, *, environ: Mapping[str, str]) -> int:
    """The daemon in the foreground, until a signal or an operator ends it. Returns the exit code."""
    hide_from_children()
    raise_descriptor_limit()
    try:
        code, stop = asyncio.run(_serve(home, config, environ))
    finally:
        logger.remove()  # writes what its sinks still hold
    reach("stop: over")
    if stop.comes_back:
        _begin_anew(environ, stop)
    for number in STOP_SIGNALS:  # the interpreter takes handlers back before it ends, and would die of one then
        signal.signal(number, signal.SIG_IGN)
    return code


def _begin_anew(environ: Mapping[str, str], stop: StopSwitch) -> None:
    """The same process, from the start: a service manager, a terminal or a container notices nothing of it.

    It returns if a stop was asked for at the last moment. A reload that is asked for now stays ignored until the new
    daemon listens: it reads the configuration anyway.
    """
    for number in STOP_SIGNALS:  # from here on one ends the process
        signal.signal(number, signal.SIG_DFL)
    if stop.comes_back:
        os.execve(sys.executable, sys.orig_argv, dict(environ))  # noqa: S606 - that is the point


async def _serve(home: Home, config: Config, environ: Mapping[str, str]) -> tuple[int, StopSwitch]:
    """The exit code, and the switch that says whether the daemon is to come back."""
    asyncio.get_running_loop().set_exception_handler(LoopComplaints())
    stop = StopSwitch()
    reload = Reload()
    # Before anything is there to stop, and until nothing is left.
    with handle_signals(stop.request, reload, stop.request_late):
        async with running(home, config, environ, stop) as daemon:
            reload.target = daemon.reload
            with suppress(OSError):  # nobody reads: that is no reason not to serve
                print(_greeting(daemon), flush=True)  # noqa: T201 - for the person at the terminal, not for the log
            allowed_s = await patience_s(environ)
            request = await stop.requested()
            reach("stop: asked")
            _leave_by_force_after(within(daemon.config.shutdown.timeout_s, allowed_s))
            await daemon.drain(request)
        logger.info("stopped")
    return request.exit_code, stop


class DirectoryConfiguration:
    """How the directory is to work: the one that is there, and whichever takes its place after a crash."""

    def __init__(self, children: Children, settings: DirectorySettings) -> None:
        self._children = children
        self._configured = settings
        self._loops = False

    @property
    def settings(self) -> DirectorySettings:
        return replace(self._configured, hold=_HELD if self._loops else self._configured.hold)

    def set(self, settings: DirectorySettings) -> None:
        self._configured = settings
        self._tell()

    def hold(self, *, loops: bool) -> None:
        """In a boot loop, turns that were cut off wait for a message whatever is configured."""
        self._loops = loops
        self._tell()

    def _tell(self) -> None:
        with suppress(ActorDeadError):  # between two lives: the next one begins with them
            self._children["directory"].tell(Configure(settings=self.settings))


class Reload:
    """What SIGHUP does: nothing until there is something to reload."""

    def __init__(self) -> None:
        self.target: Callable[[], None] | None = None

    def __call__(self) -> None:
        if self.target is not None:
            self.target()


@asynccontextmanager
async def embedded(home: Home, config: Config, environ: Mapping[str, str]) -> AsyncIterator[None]:
    """A daemon inside another program: no signals, no API port; ready on entry."""
    async with running(home, config, environ, StopSwitch(embedded=True), api=False) as daemon:
        yield
        await daemon.drain(StopRequest(reason="the program around it ends"))


@asynccontextmanager
async def running(  # noqa: PLR0915 - everything that starts, in its order, in one visible function
    home: Home,
    config: Config,
    environ: Mapping[str, str],
    stop: StopSwitch,
    *,
    api: bool = True,
) -> AsyncIterator[Daemon]:
    """Start in order; on the way out stop in reverse, then complain about anything left."""
    given_api_key(environ)  # before anything is made
    prepare(home)
    async with AsyncExitStack() as stack:
        stack.enter_context(lock(home))
        reach("start: locked")
        configure_logging(config.log, home)
        key = ensure_api_key(home, config, environ)
        redact(key)
        models = make_models(config, environ)
        importing = asyncio.create_task(asyncio.to_thread(_import_servers))  # slow, so while the store opens

        engine = await asyncio.to_thread(
            LmdbEngine.open, home.store_dir, map_size_bytes=config.storage.map_size_mb << 20
        )
        stack.callback(engine.close)
        await asyncio.to_thread(note_store, home)
        reach("start: store open")
        journal = ActorJournal(engine, on_fatal=stop.on_storage_failure)
        stack.push_async_callback(journal.close)
        boot = await _boot(journal) if api else None
        if boot is not None:
            stack.push_async_callback(_mark_stopped, journal, stop)

        hub = EventHub()
        children = Children()
        search = SearchDesk(home.data_dir / "index", engine=engine)
        folders = folders_of(home)
        views = LateViews()
        rules = ResetRules(
            reset_settings(config, environ),
            processes=views,
            clock=wall_clock.wall,
            steady=time.monotonic,
            pulse=time.monotonic,
        )
        adapters = make_adapters(config, environ) if api else []
        for adapter in adapters:
            stack.push_async_callback(adapter.close)
        deliver = partial(_hand_to_delivery, children)
        desk = FrontDesk(
            directory=lambda: children["directory"],
            journal=journal,
            clock=wall_clock.wall,
            max_waiting=config.sessions.max_waiting,
            erased=partial(_forget, folders, search, children),
            resets=rules.explain,
            deliver=deliver,
        )
        processes = await stack.enter_async_context(
            open_processes(
                config,
                home,
                children=children,
                sessions=desk,
                journal=journal,
                hub=hub,
                deliver=deliver,
                new_turn=_new_turn_id,
            )
        )
        views.of = processes.front
        stack.push_async_callback(search.stop)
        workshop = Prepared(
            partial(make_workshop, config, home, environ, search=search, desk=desk, processes=processes.front)
        )
        agent = await make_agent(
            config, folders, models=models, hub=hub, workshop=workshop, journal=journal, media=home.media_dir
        )
        stack.push_async_callback(agent.runner.close)

        facts: dict[str, Any] = {"home": str(home.data_dir), "model": models[0].name, "epoch": engine.epoch}
        operations = DaemonOperations(
            engine=engine,
            journal=journal,
            children=children,
            verify=partial(verify, home.store_dir),
            notifier=Notifier.from_environ(environ),
            stop=stop,
            facts=facts,
            turns=agent.runner.counts,
            clock=wall_clock.wall,
            check_config=lambda: make_models(load_config(home, environ), environ),
        )
        commands = CommandDesk(
            desk,
            new_turn_id=_new_turn_id,
            clock=wall_clock.wall,
            models=agent.runner.model_names,
            personalities=lambda: tuple(PERSONALITIES),
            context_window=lambda: agent.thinking.settings.context_window,
            processes=processes.front,
            restart=operations.request_restart,
        )
        outgoing = ObligationDesk(journal, deliver)
        office = make_office(adapters, sessions=desk, outgoing=outgoing)
        directory = DirectoryConfiguration(children, _directory_settings(config))
        _start_actors(
            stack,
            children=children,
            journal=journal,
            agent=agent,
            hub=hub,
            operations=operations,
            rules=rules,
            processes=processes,
            directory=directory,
            deliver=deliver,
            tell_left=partial(tell_left, office.homes),
            resets=api,  # a daemon inside another program leaves the sessions of others alone
            chat=[
                delivery_spec(adapters, journal=journal, hub=hub, pairing=office.pairing),
                *(
                    adapter_spec(
                        adapter,
                        config=config,
                        sessions=desk,
                        outgoing=outgoing,
                        commands=commands,
                        pairing=office.pairing,
                        new_turn_id=_new_turn_id,
                        reception=make_reception(adapter, config, home, environ),
                    )
                    for adapter in adapters
                ),
            ],
        )
        await processes.front.until_filled()  # before anybody asks for the list, or a reset is judged without it
        reach("start: actors there")

        servers = await importing
        ports = {
            "sessions": desk,
            "commands": commands,
            "hub": hub,
            "operations": operations,
            "processes": processes.front,
            "new_turn_id": _new_turn_id,
            "clock": wall_clock.wall,
        }
        admin = servers.AdminServer(home.socket, office=office, **ports)
        await admin.start()
        stack.callback(reach, "stop: servers closed")
        stack.push_async_callback(admin.stop, _GRACE_S)
        api_server = None
        if config.api.enabled and api:
            api_server = servers.ApiServer(_api_settings(servers.ApiSettings, config, key.reveal()), **ports)
            await api_server.start()
            stack.push_async_callback(api_server.stop, _GRACE_S)
            facts["address"] = api_server.address

        reach("start: serving")
        holds = boot is not None and boot.is_loop(config.resume.boot_loop_starts)
        if boot is not None:  # a daemon inside another program leaves the work of others alone
            directory.hold(loops=holds)
            directory.set(_directory_settings(config, take_up=True))
            _tell_of(boot, holds=holds)
        operations.set_ready()
        reach("start: ready")
        logger.info(
            "Hermes {} is ready: pid {}, home {}, model {}, API {}",
            __version__, os.getpid(), home.data_dir, models[0].name, facts.get("address", "off"),
        )  # fmt: skip
        stack.push_async_callback(_end, asyncio.create_task(operations.pulse(desk.round_trip), name="pulse"))
        if adapters:
            watch = make_watch(office, sessions=desk, processes=processes.front, operations=operations)
            back = _back(boot, config, holds=holds) if boot is not None else ""
            telling = keep_homes_posted(office.homes, watch, name=f"back:{engine.epoch}", text=back)
            stack.push_async_callback(_end, asyncio.create_task(telling, name="home channels"))
        if holds:
            facts["resume"] = _boot_loop(boot) if boot is not None else ""
            asyncio.get_running_loop().call_later(LOOP_WITHIN_S, _hold_no_longer, directory, facts)
        yield Daemon(
            home=home,
            config=config,
            environ=environ,
            operations=operations,
            desk=desk,
            agent=agent,
            children=children,
            directory=directory,
            rules=rules,
            api=api_server,
            facts=facts,
            processes=processes.front,
            homes=office.homes if adapters else None,
        )
    left = [str(actor) for actor in live_actors()]
    if left:
        logger.error("still there after the stop: {}", ", ".join(left[:10]))


def _start_actors(
    stack: AsyncExitStack,
    *,
    children: Children,
    journal: ActorJournal,
    agent: AgentParts,
    hub: EventHub,
    operations: DaemonOperations,
    rules: ResetRules,
    processes: ProcessParts,
    directory: DirectoryConfiguration,
    deliver: Callable[[Sequence[Obligation]], None],
    tell_left: Callable[[Session, str], Awaitable[None]],
    resets: bool,
    chat: Sequence[ChildSpec],
) -> None:
    after_reset = AfterReset(journal=journal, end_process=partial(processes.front.end, why=RESET), tell=tell_left)
    stack.push_async_callback(after_reset.close)
    if resets:
        after_reset.take_up()
    start_directory = partial(
        SessionDirectory.start,
        journal=journal,
        agent=agent.runner,
        hub=hub,
        clock=wall_clock.wall,
        identity=Identity(session=new_session_id, turn=_new_turn_id),
        restart_policy=RestartIntensity(),
        memory_bytes=lambda: operations.memory_bytes,
        resets=rules,
        was_reset=after_reset,
        deliver=deliver,
        name="directory",
    )
    clock = partial(
        ResetClock.start,
        rules=rules,
        journal=journal,
        directory=lambda: children["directory"],
        clock=wall_clock.wall,
        every_s=wall_clock.pace(EVERY_S),
        name="resets",
    )
    delivery, *connections = chat
    specs = [
        delivery,
        ChildSpec(name="directory", start=lambda owner: start_directory(owner=owner, settings=directory.settings)),
        ChildSpec(name=PROCESSES, start=processes.start_desk),
    ]
    if resets:
        specs.append(ChildSpec(name="resets", start=lambda owner: clock(owner=owner)))
    root = RootActor.start(
        (*specs, *connections),
        children=children,
        policy=RestartIntensity(),
        clock=wall_clock.wall,
        report=lambda name, problem, said: hub.publish(ActorFailed(name=name, problem=problem, verdict=said)),
        name="root",
    )
    stack.callback(reach, "stop: actors gone")
    stack.push_async_callback(_stop_actors, root)


@dataclass(slots=True, kw_only=True)
class Daemon:
    """The running parts that a stop and a reload need."""

    home: Home
    config: Config
    environ: Mapping[str, str]
    operations: DaemonOperations
    desk: FrontDesk
    agent: AgentParts
    children: Children
    directory: DirectoryConfiguration
    rules: ResetRules
    api: ApiServer | None
    facts: dict[str, Any]
    processes: ProcessFront
    homes: HomeDesk | None = None  # of chat platforms, to be told of a stop

    async def drain(self, request: StopRequest) -> None:
        """Take no more work, mark what is in flight, then give it a while to finish and to be told."""
        self.operations.set_stopping(request)
        self.desk.close("the daemon is stopping")
        if self.api is not None:
            self.api.close_intake()
        if request.exit_code == EXIT_STORAGE:
            return
        reach("stop: intake closed")
        deadline = asyncio.get_running_loop().time() + self.config.shutdown.drain_s
        with suppress(ActorDeadError, HermesError, TimeoutError):  # recovery finds the same work without the marks
            async with asyncio.timeout_at(deadline):
                await self._mark(request)
                while self.desk.waiting:  # noqa: ASYNC110 - for the few that were on their way to disk
                    await asyncio.sleep(_TICK_S)
                await self._mark(request)  # the turns that these began
        reach("stop: marked")
        if self.homes is not None and self.config.chat.restart_banner:
            with suppress(HermesError, TimeoutError):
                async with asyncio.timeout_at(deadline):
                    how = "restarting" if request.restart else "stopping"
                    text = f"Hermes is {how} ({request.reason})."
                    await self.homes.tell_all(f"stop:{self.facts['epoch']}", text)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                await self._until_idle()
        reach("stop: drained")
        with suppress(ActorDeadError, HermesError, TimeoutError):  # else it is said after the next start
            async with asyncio.timeout_at(max(deadline, asyncio.get_running_loop().time() + _GRACE_S)):
                await self._mark(request)  # each answers when its last answer is on disk and with delivery
                await self.children[DELIVERY].ask(Settle(), block=False)
        if not self.config.processes.keep_on_stop and (ended := await self.processes.end_all(STOPPED)):
            logger.info("{} background processes were ended with the daemon (processes.keep_on_stop)", ended)
        elif left := self.processes.running():
            logger.info("{} background processes run on (processes.keep_on_stop); the next daemon finds them", left)
        if active := self.agent.runner.active:
            logger.warning("{} did not finish in time and will go on after the next start", _pieces(active))

    async def _mark(self, request: StopRequest) -> None:
        announced = AnnounceStopToAll(reason=request.announced)
        for mark in await self.children["directory"].ask(announced, block=False):
            await mark

    async def _until_idle(self) -> None:
        """A service manager that counts is asked for more time as often as work has come to its end meanwhile."""
        idle = asyncio.create_task(self.agent.runner.until_idle(), name="until idle")
        left = self.agent.runner.active
        try:
            while not (await asyncio.wait([idle], timeout=_PROGRESS_S))[0]:
                if self.agent.runner.active < left:
                    left = self.agent.runner.active
                    self.operations.stop_goes_on(self.config.shutdown.timeout_s)
        finally:
            idle.cancel()

    def reload(self) -> None:
        """Read the configuration again and apply what can change while the daemon runs."""
        try:
            new = load_config(self.home, self.environ)
            models = make_models(new, self.environ)
        except ConfigError as error:
            logger.error("the configuration was not reloaded, the old one stays: {}", error)
            return
        applied, later = Config.reloadable_changes(self.config, new)
        if any(name.startswith("model.") for name in applied):
            self.agent.runner.set_models(models)
            self.facts["model"] = models[0].name
        self.agent.configure(new)
        if "log.level" in applied:
            configure_logging(new.log, self.home)
        if self.api is not None:
            self.api.set_cors_origins(new.api.cors_origins)
        self.desk.max_waiting = new.sessions.max_waiting
        self.processes.settings = process_settings(new)
        self.directory.set(_directory_settings(new, take_up=True))
        self.rules.settings = reset_settings(new, self.environ)
        with suppress(ActorDeadError):  # between two lives: the next one looks for itself
            self.children["resets"].tell(PolicyChanged())
        self.config = new
        logger.info("configuration reloaded: {}", ", ".join(applied) or "nothing changed")
        if later:
            logger.warning("these settings need a restart: {}", ", ".join(later))


# ---------------------------------------------------------------- from settings to parts


def _import_servers() -> SimpleNamespace:
    """aiohttp takes longer to import than everything else together."""
    from hermes.adapters.admin.server import AdminServer  # noqa: PLC0415
    from hermes.adapters.openai_api.server import ApiServer, ApiSettings  # noqa: PLC0415

    return SimpleNamespace(AdminServer=AdminServer, ApiServer=ApiServer, ApiSettings=ApiSettings)


def _hand_to_delivery(children: Children, owed: Sequence[Obligation]) -> None:
    with suppress(ActorDeadError):  # between two lives: the next one reads the outbox
        children[DELIVERY].tell(Say(owed=owed))


async def _forget(folders: Folders, search: SearchDesk, children: Children, session: SessionId) -> None:
    """What is kept of a session besides its records goes with them."""
    with suppress(ActorDeadError):
        children[PROCESSES].tell(ForgetProcesses(session=session))
    with suppress(ActorDeadError):
        children[DELIVERY].tell(ForgetSession(session=session))
    await asyncio.to_thread(folders.remove, session)
    await search.forget(session)


async def _boot(journal: ActorJournal) -> Boot:
    boot = await journal.fetch(lambda reader: read_boot(reader, wall_clock.wall()))
    journal.commit(started(boot), _complain_unwritten)
    return boot


def _complain_unwritten(error: HermesError | None) -> None:
    if error is not None:
        logger.warning("that this daemon has started could not be written down: {}", error)


def _tell_of(boot: Boot, *, holds: bool) -> None:
    if boot.stopped:
        logger.info("the last daemon stopped cleanly: {}", boot.stopped)
    elif not boot.first:
        logger.warning("the last daemon did not stop cleanly; what was open is taken up")
    if holds:
        logger.error("{}", _boot_loop(boot))


def _back(boot: Boot, config: Config, *, holds: bool) -> str:
    """What the home channels are told; empty: nothing."""
    if holds:
        return f"Hermes keeps crashing: {_boot_loop(boot)}."
    if not config.chat.restart_banner:
        return ""
    clean = boot.stopped or boot.first
    return "Hermes is back." if clean else "Hermes is back. It had not stopped cleanly; what was open goes on."


def _boot_loop(boot: Boot) -> str:
    return (
        f"this is start number {len(boot.starts)} within a minute, each after a crash: interrupted turns do not go "
        "on by themselves but with the next message, or by `hermes resume`"
    )


def _hold_no_longer(directory: DirectoryConfiguration, facts: dict[str, Any]) -> None:
    """The loop is over. What was held stays so until somebody writes; what is cut off from now on is not."""
    facts.pop("resume", None)
    directory.hold(loops=False)


async def _mark_stopped(journal: ActorJournal, stop: StopSwitch) -> None:
    """The last thing that is written: after this there is nothing left to lose."""
    if stop:
        done = LoopFuture()
        journal.commit(stopped((await stop.requested()).announced), done.set)
        if (error := await done) is not None:
            logger.warning("that this stop was clean could not be written down: {}", error)
        reach("stop: clean")


def _directory_settings(config: Config, *, take_up: bool = False) -> DirectorySettings:
    return DirectorySettings(
        idle_after_s=config.sessions.idle_after_s,
        max_live=config.sessions.max_live,
        limits=Limits(
            max_queue=config.sessions.max_queue,
            max_replies=config.agent.max_turns,
            max_parallel=config.agent.max_parallel_tools,
            busy=Busy(config.agent.busy_input_mode),
        ),
        memory_limit_bytes=config.sessions.memory_limit_mb << 20,
        seen_for_s=config.storage.inbox_days * 86400.0,
        take_up=take_up,
        hold="held (resume.when)" if config.resume.when == "next_message" else "",
        resume_per_s=config.resume.per_second,
    )


def _api_settings(settings: Any, config: Config, key: str) -> Any:
    return settings(
        host=config.api.host,
        port=config.api.port,
        key=key,
        cors_origins=config.api.cors_origins,
        allowed_hosts=config.api.allowed_hosts,
        max_body_bytes=config.api.max_body_bytes,
        max_connections=connections_within(config.api.max_connections),
        max_connections_per_peer=config.api.max_connections_per_peer,
        header_timeout_s=config.api.header_timeout_s,
        body_timeout_s=config.api.body_timeout_s,
    )


def _new_turn_id() -> TurnId:
    return TurnId(secrets.token_hex(12))


# ---------------------------------------------------------------- on the way out


def _pieces(number: int) -> str:
    return "one piece of work" if number == 1 else f"{number} pieces of work"


async def _stop_actors(root: ActorRef[RootActor]) -> None:
    with suppress(ActorDeadError):
        await root.ask(StopChildren(), block=False)
        await root.stop(block=False)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _GRACE_S
    while live_actors() and loop.time() < deadline:  # noqa: ASYNC110 - sessions end within a few rounds
        await asyncio.sleep(0)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()):
        logger.opt(exception=error).error("{} had ended before its time", task.get_name())


def _leave_by_force_after(timeout_s: float) -> None:
    """A stop that hangs ends all the same: everything acknowledged is on disk, and the next start takes it up."""

    def leave() -> None:
        said = threading.Thread(
            target=logger.error, args=("the stop took longer than {} s; leaving by force", timeout_s), daemon=True
        )
        said.start()
        said.join(0.2)  # and no longer: the log may be what hangs
        os._exit(EXIT_TRY_AGAIN)

    timer = threading.Timer(timeout_s, leave)
    timer.daemon = True
    timer.start()


def _greeting(daemon: Daemon) -> str:
    facts = daemon.facts
    if "address" not in facts:
        return f"Hermes {__version__} is ready on {daemon.home.socket} (the API is off)"
    path = str(api_key_path(daemon.home, daemon.config))
    from_environ = "HERMES_API_KEY" in daemon.environ
    key = "$HERMES_API_KEY" if from_environ else f"$(cat {shlex.quote(path)})"
    hermes = "hermes" if shutil.which("hermes") else ".venv/bin/hermes"
    prefix = f"HERMES_HOME={shlex.quote(facts['home'])} " if "HERMES_HOME" in daemon.environ else ""
    return f"""Hermes {__version__} is ready at {facts["address"]} (model: {facts["model"]})
  API key  {"in the variable HERMES_API_KEY" if from_environ else path}
  Try      curl -s {facts["address"]}/v1/chat/completions -H "Authorization: Bearer {key}" \\
             -H 'Content-Type: application/json' \\
             -d '{{"model": "hermes", "messages": [{{"role": "user", "content": "Hello!"}}]}}'
  Look in  {prefix}{hermes} ps
  Stop     Ctrl-C, or {prefix}{hermes} stop"""
