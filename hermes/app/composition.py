"""Composition root: `running` starts everything in order. A shutdown closes it in reverse.

This is the only module that knows every part. It decides nothing about conversations.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any

from loguru import logger

from hermes import __version__
from hermes.actors.after_reset import AfterReset
from hermes.actors.delivery.protocol import Deliveries, ForgetSession
from hermes.actors.directory import SessionDirectory
from hermes.actors.journal import ActorJournal
from hermes.actors.kernel.actor import live_actors
from hermes.actors.kernel.ref import ActorDeadError, ActorRef
from hermes.actors.process_notice import RESET
from hermes.actors.process_supervisor import ForgetProcesses
from hermes.actors.reset_rules import ResetRules
from hermes.actors.reset_scheduler import EVERY_S, ResetClock
from hermes.agent.personality import PERSONALITIES
from hermes.agent.tool_step import Folders
from hermes.app.boot_record import BootRecord, banner, boot_loop_notice, log_previous_boot
from hermes.app.daemon import Daemon
from hermes.app.directory_configuration import DirectoryConfiguration, directory_settings
from hermes.app.factories.agent import (
    AgentParts,
    Prepared,
    folders_of,
    make_agent,
    output_retention,
    prepare_turn,
)
from hermes.app.factories.api_files import make_file_shelf, make_input_parts
from hermes.app.factories.chat import (
    DELIVERY,
    adapter_spec,
    delivery_spec,
    keep_homes_posted,
    make_adapters,
    make_chat_services,
    make_watch,
    tell_left,
)
from hermes.app.factories.media import make_reception
from hermes.app.factories.models import make_models
from hermes.app.factories.preflight import preflight
from hermes.app.factories.processes import NAME as PROCESSES
from hermes.app.factories.processes import ProcessParts, announce, from_thread, open_processes
from hermes.app.factories.prompt_files import TrustedPromptFiles
from hermes.app.factories.resets import LateProcessViews, are_there_resets, reset_settings
from hermes.app.factories.sandbox import SandboxOpener
from hermes.app.loop_lag import LoopLag
from hermes.app.notify import Notifier
from hermes.app.operations import DaemonOperations
from hermes.app.os_process import connections_within
from hermes.app.secret_files import digests
from hermes.app.shutdown_effects import DaemonShutdown, stop_actors
from hermes.config.file import EMPTY, is_empty
from hermes.config.home import Home, has_store, lock, note_store, prepare
from hermes.config.log import configure_logging, redact
from hermes.config.secret import ensure_api_key, given_api_key
from hermes.config.settings import Config
from hermes.config.trust import WorkingDirectories
from hermes.domain.errors import ConfigError
from hermes.domain.events import ActorFailed
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.session.state import Session
from hermes.ports.given import IdSource
from hermes.ports.processes import NetworkedProcesses
from hermes.services.commands.service import CommandService
from hermes.services.event_hub import EventHub
from hermes.services.keys import KeyService
from hermes.services.outbox import OutboxService
from hermes.services.retention import SessionRetention
from hermes.services.search import SearchService
from hermes.services.sessions import SessionService
from hermes.services.turn_meter import TurnMeter
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.storage.verify import verify
from hermes.supervision.boot import LOOP_WITHIN_S, Boot
from hermes.supervision.policy import RestartIntensity
from hermes.supervision.root import Children, ChildSpec, RootActor
from hermes.supervision.shutdown import StopRequest
from hermes.supervision.stop_switch import StopSwitch
from hermes.system import clock as wall_clock
from hermes.system.crash_point import reach
from hermes.system.random_id import new_session_id

_GRACE_S = 1.0
_DAY_S = 86_400.0


@asynccontextmanager
async def running(  # noqa: PLR0915 - everything that starts, in its order, in one visible function
    home: Home,
    config: Config,
    environ: Mapping[str, str],
    stop: StopSwitch,
    *,
    api: bool = True,
) -> AsyncIterator[Daemon]:
    """Start every part in order. The exit closes in reverse what the shutdown has not closed.

    `workers` are closed after the actors, `servers` before them.
    """
    given_api_key(environ)  # before anything is made
    prepare(home)
    async with AsyncExitStack() as stack:
        stack.enter_context(lock(home))
        reach("start: locked")
        configure_logging(config.log, home)
        config_empty = is_empty(home.config_file)
        if config_empty:
            logger.warning("{}: {}", home.config_file, EMPTY)
        key = ensure_api_key(home, config, environ)
        redact(key)
        secret_files = await asyncio.to_thread(digests, home, config, environ)
        models = make_models(config, environ)
        importing = asyncio.create_task(asyncio.to_thread(_import_servers))  # slow: done while the store opens

        engine, journal = await _open_store(stack, home, config, stop)
        boot_record = await BootRecord.begin(journal) if api else None
        if boot_record is not None:
            stack.push_async_callback(boot_record.end, stop)
        workers = await stack.enter_async_context(AsyncExitStack())

        turn_meter = TurnMeter(time.monotonic)
        hub = EventHub(note=turn_meter.note)
        loop_lag = LoopLag()
        children = Children()
        search = SearchService(home.data_dir / "index", engine=engine)
        folders = folders_of(home)
        views = LateProcessViews()
        rules = ResetRules(
            reset_settings(config, environ),
            processes=views,
            clock=wall_clock.wall,
            steady=time.monotonic,
            pulse=time.monotonic,
        )
        adapters = make_adapters(config, environ) if api else []
        for adapter in adapters:
            workers.push_async_callback(adapter.close)
        deliver = partial(_hand_to_delivery, children)
        sessions = SessionService(
            directory=lambda: children["directory"],
            journal=journal,
            clock=wall_clock.wall,
            max_waiting=config.sessions.max_waiting,
            erased=partial(_forget, folders, search, children),
            resets=rules.explain,
            deliver=deliver,
        )
        processes = await workers.enter_async_context(
            open_processes(
                config,
                home,
                children=children,
                sessions=sessions,
                journal=journal,
                hub=hub,
                deliver=deliver,
                new_turn=_new_turn_id,
            )
        )
        views.of = processes.front
        workers.push_async_callback(search.stop)
        sandbox = SandboxOpener(config, home)
        workers.push_async_callback(sandbox.close)
        workshop = Prepared(
            partial(
                prepare_turn,
                config,
                home,
                environ,
                search=search,
                sessions=sessions,
                processes=processes.front,
                sandbox=sandbox,
                tell=from_thread(partial(announce, hub, journal, OutboxService(journal, deliver))),
            )
        )
        agent = await make_agent(
            config, folders, models=models, hub=hub, workshop=workshop, journal=journal, media=home.media_dir
        )
        workers.push_async_callback(agent.runner.close)

        facts: dict[str, Any] = {
            "home": str(home.data_dir),
            "model": models.chain[0].name,
            "epoch": engine.epoch,
            "resets": are_there_resets(config.session_reset),
            "config_empty": config_empty,
        }
        retention = SessionRetention(
            journal,
            erase=sessions.erase,
            has_processes=lambda root: any(view.ended_at is None for view in processes.front.views(root)),
            clock=wall_clock.wall,
        )
        operations = DaemonOperations(
            engine=engine,
            journal=journal,
            children=children,
            verify=partial(verify, home.store_dir),
            notifier=Notifier.from_environ(environ),
            stop=stop,
            facts=facts,
            turns=agent.runner.counts,
            model_health=agent.health.facts,
            search=search,
            retention=retention,
            turn_meter=turn_meter,
            loop_lag=loop_lag,
            processes=processes.front,
            clock=wall_clock.wall,
            check_config=partial(preflight, home, environ),
            sandbox=sandbox.status,
        )
        commands = CommandService(
            sessions,
            new_turn_id=_new_turn_id,
            clock=wall_clock.wall,
            models=agent.runner.model_names,
            personalities=lambda: tuple(PERSONALITIES),
            context_window=agent.context_window,
            processes=processes.front,
            restart=operations.request_restart,
            prompt_files=TrustedPromptFiles(config, home, folders),
        )
        outbox = OutboxService(journal, deliver)
        chat_services = make_chat_services(adapters, sessions=sessions, outbox=outbox)
        directory = DirectoryConfiguration(children, directory_settings(config))
        root = _start_actors(
            workers,
            children=children,
            journal=journal,
            agent=agent,
            hub=hub,
            operations=operations,
            rules=rules,
            processes=processes,
            directory=directory,
            deliver=deliver,
            tell_left=partial(tell_left, chat_services.homes),
            resets=api,  # an embedded daemon does not reset sessions
            chat=[
                delivery_spec(adapters, journal=journal, hub=hub, pairing=chat_services.pairing),
                *(
                    adapter_spec(
                        adapter,
                        config=config,
                        sessions=sessions,
                        outbox=outbox,
                        commands=commands,
                        pairing=chat_services.pairing,
                        new_turn_id=_new_turn_id,
                        reception=make_reception(adapter, config, home, environ),
                    )
                    for adapter in adapters
                ),
            ],
        )
        stack.push_async_callback(stop_actors, root)
        servers = await stack.enter_async_context(AsyncExitStack())
        await processes.front.until_filled()  # a list or a reset decision needs all processes
        reach("start: actors there")

        ports = {
            "sessions": sessions,
            "commands": commands,
            "hub": hub,
            "operations": operations,
            "processes": processes.front,
            "new_turn_id": _new_turn_id,
            "clock": wall_clock.wall,
            "keys": KeyService(sessions, wall_clock.wall),
            "search": search,
            "files": (shelf := make_file_shelf(config, home)),
            "inputs": make_input_parts(config, home, shelf, sandbox),
        }
        imported = await importing
        admin = imported.AdminServer(
            home.socket, chat_services=chat_services, workdirs=_workdirs(home, folders), **ports
        )
        await admin.start()
        servers.push_async_callback(admin.stop, _GRACE_S)
        api_server = None
        if config.api.enabled and api:
            api_server = imported.ApiServer(_api_settings(imported.ApiSettings, config, key.reveal()), **ports)
            await api_server.start()
            servers.push_async_callback(api_server.stop, _GRACE_S)
            facts["address"] = api_server.address

        reach("start: serving")
        if boot_record is not None:  # an embedded daemon does not resume work
            boot_record.was_ready = True
            if not stop:  # else the resumed work would be interrupted immediately
                _resume_open_work(boot_record.boot, config, directory, facts)
            search.start()
        operations.set_ready()
        reach("start: ready")
        logger.info(
            "Hermes {} is ready: pid {}, home {}, model {}, API {}",
            __version__, os.getpid(), home.data_dir, models.chain[0].name, facts.get("address", "off"),
        )  # fmt: skip
        servers.push_async_callback(_end, asyncio.create_task(loop_lag.run(), name="loop lag"))
        servers.push_async_callback(_end, asyncio.create_task(operations.pulse(sessions.round_trip), name="pulse"))
        servers.push_async_callback(
            _end, asyncio.create_task(_open_sandbox(sandbox, processes.front), name="sandbox")
        )
        if boot_record is not None:
            outputs = output_retention(config, folders, sessions.conversation, processes.front)
            servers.push_async_callback(_end, asyncio.create_task(outputs.run(), name="output retention"))
            if config.sessions.auto_prune:
                pruning = retention.run(config.sessions.retention_days * _DAY_S)
                servers.push_async_callback(_end, asyncio.create_task(pruning, name="session retention"))
        if adapters:
            watch = make_watch(chat_services, sessions=sessions, processes=processes.front, operations=operations)
            back = banner(boot_record.boot, config) if boot_record is not None else ""
            telling = keep_homes_posted(chat_services.homes, watch, name=f"back:{engine.epoch}", text=back)
            servers.push_async_callback(_end, asyncio.create_task(telling, name="home channels"))
        shutdown = DaemonShutdown(
            config=config,
            operations=operations,
            sessions=sessions,
            runner=agent.runner,
            children=children,
            processes=processes.front,
            epoch=engine.epoch,
            close_servers=servers.aclose,
            close_workers=workers.aclose,
            write_clean_marker=boot_record.write_clean_marker if boot_record is not None else _write_no_marker,
            api=api_server,
            homes=chat_services.homes if adapters else None,
        )
        daemon = Daemon(
            home=home,
            config=config,
            environ=environ,
            operations=operations,
            sessions=sessions,
            agent=agent,
            root=root,
            children=children,
            shutdown=shutdown,
            directory=directory,
            rules=rules,
            api=api_server,
            facts=facts,
            processes=processes.front,
            secrets=secret_files,
        )
        if api:
            operations.reloader = daemon.reload
        yield daemon
    left = [str(actor) for actor in live_actors()]
    if left:
        logger.error("actors still running after the shutdown: {}", ", ".join(left[:10]))


async def _open_store(
    stack: AsyncExitStack, home: Home, config: Config, stop: StopSwitch
) -> tuple[LmdbEngine, ActorJournal]:
    made_before = has_store(home)
    engine = await asyncio.to_thread(
        LmdbEngine.open, home.store_dir, map_size_bytes=config.storage.map_size_mb << 20, made_before=made_before
    )
    stack.callback(engine.close)
    await asyncio.to_thread(note_store, home)
    reach("start: store open")
    journal = ActorJournal(engine, on_fatal=stop.on_storage_failure)
    stack.push_async_callback(journal.close)
    return engine, journal


async def _open_sandbox(sandbox: SandboxOpener, processes: NetworkedProcesses) -> None:
    """Open the sandbox early, so that the log and the status report problems before the first tool runs."""
    try:
        await asyncio.to_thread(sandbox)
        await sandbox.serve_again(processes)
    except ConfigError as error:
        logger.error("sandbox: {}", error)


def _resume_open_work(boot: Boot, config: Config, directory: DirectoryConfiguration, facts: dict[str, Any]) -> None:
    """Resume what earlier boots left open. In a boot loop it waits for a message."""
    is_held = boot.is_loop(config.resume.boot_loop_starts)
    directory.hold(boot_loop=is_held)
    directory.set(directory_settings(config, take_up=True))
    log_previous_boot(boot, is_held=is_held)
    if is_held:
        facts["resume"] = boot_loop_notice(boot)
        asyncio.get_running_loop().call_later(LOOP_WITHIN_S, _end_boot_loop, directory, facts)


def _end_boot_loop(directory: DirectoryConfiguration, facts: dict[str, Any]) -> None:
    """Stop holding interrupted turns. Those that are held already wait for a message."""
    facts.pop("resume", None)
    directory.hold(boot_loop=False)


def _start_actors(
    workers: AsyncExitStack,
    *,
    children: Children,
    journal: ActorJournal,
    agent: AgentParts,
    hub: EventHub,
    operations: DaemonOperations,
    rules: ResetRules,
    processes: ProcessParts,
    directory: DirectoryConfiguration,
    deliver: Callable[[Sequence[OutboxMessage]], None],
    tell_left: Callable[[Session, str], Awaitable[None]],
    resets: bool,
    chat: Sequence[ChildSpec],
) -> ActorRef[RootActor]:
    after_reset = AfterReset(journal=journal, end_process=partial(processes.front.end, why=RESET), tell=tell_left)
    workers.push_async_callback(after_reset.close)
    if resets:
        after_reset.take_up()
    start_directory = partial(
        SessionDirectory.start,
        journal=journal,
        agent=agent.runner,
        hub=hub,
        clock=wall_clock.wall,
        identity=IdSource(session=new_session_id, turn=_new_turn_id),
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
    return RootActor.start(
        (*specs, *connections),
        children=children,
        policy=RestartIntensity(),
        clock=wall_clock.wall,
        report=lambda name, problem, verdict: hub.publish(ActorFailed(name=name, problem=problem, verdict=verdict)),
        name="root",
    )


@asynccontextmanager
async def embedded(home: Home, config: Config, environ: Mapping[str, str]) -> AsyncIterator[None]:
    """Run a daemon inside another program: no signals, no API port; ready on entry."""
    async with running(home, config, environ, StopSwitch(embedded=True), api=False) as daemon:
        yield
        await daemon.stop(StopRequest(reason="the program around it ends"))


async def _write_no_marker(request: StopRequest) -> None:
    """An embedded daemon keeps no boot record."""


def _import_servers() -> SimpleNamespace:
    """Import the servers: aiohttp takes longer than everything else together."""
    from hermes.adapters.admin.server import AdminServer  # noqa: PLC0415
    from hermes.adapters.openai_api.server import ApiServer, ApiSettings  # noqa: PLC0415

    return SimpleNamespace(AdminServer=AdminServer, ApiServer=ApiServer, ApiSettings=ApiSettings)


def _hand_to_delivery(children: Children, outgoing: Sequence[OutboxMessage]) -> None:
    with suppress(ActorDeadError):  # restarting: the next one reads the outbox
        children[DELIVERY].tell(Deliveries(outgoing=outgoing))


def _workdirs(home: Home, folders: Folders) -> WorkingDirectories:
    return WorkingDirectories(folder_of=folders.path, own=(home.data_dir, home.config_file.parent))


async def _forget(folders: Folders, search: SearchService, children: Children, session: SessionId) -> None:
    """Delete what is kept of a session besides its records."""
    with suppress(ActorDeadError):
        children[PROCESSES].tell(ForgetProcesses(session=session))
    with suppress(ActorDeadError):
        children[DELIVERY].tell(ForgetSession(session=session))
    await asyncio.to_thread(folders.remove, session)
    await search.forget(session)


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
        allow_yolo=config.api.allow_yolo,
    )


def _new_turn_id() -> TurnId:
    return TurnId(secrets.token_hex(12))


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()):
        logger.opt(exception=error).error("background task failed: {}", task.get_name())
