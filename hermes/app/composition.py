"""Composition root: `running` starts everything in order. A shutdown closes it in reverse.

The list of parts is here; each part is made elsewhere. Nothing here decides anything about conversations.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from loguru import logger

from hermes import __version__
from hermes.actors.kernel.actor import live_actors
from hermes.app.actor_system import RESETS
from hermes.app.boot_record import banner, boot_loop_notice, log_previous_boot
from hermes.app.daemon import Daemon
from hermes.app.factories.agent import output_retention
from hermes.app.factories.dashboard import has_dashboard
from hermes.app.foundation import Foundation, open_foundation
from hermes.app.job_system import SCHEDULER
from hermes.app.parts import DaemonParts, make_parts
from hermes.app.servers import serve
from hermes.app.shutdown_effects import DaemonShutdown
from hermes.config.home import Home
from hermes.config.settings import Config
from hermes.domain.errors import ConfigError
from hermes.domain.event.hook import HookEvent
from hermes.supervision.boot import LOOP_WITHIN_S, Boot
from hermes.supervision.root import ChildSpec
from hermes.supervision.shutdown import StopRequest
from hermes.supervision.stop_switch import StopSwitch
from hermes.system.crash_point import reach

if TYPE_CHECKING:
    from hermes.adapters.openai_api.server import ApiServer

_DAY_S = 86_400.0
_HOOKS_STOP_S = 2.0  # for hooks of the stop


@asynccontextmanager
async def running(home: Home, config: Config, environ: Mapping[str, str], stop: StopSwitch) -> AsyncIterator[Daemon]:
    """Start every part in order. The exit closes in reverse what the shutdown has not closed.

    `workers` are closed after the actors, `servers` before them.
    """
    async with AsyncExitStack() as stack:
        base = await open_foundation(stack, home, config, environ, stop)
        workers = await stack.enter_async_context(AsyncExitStack())
        parts = await make_parts(workers, base)
        stack.push_async_callback(parts.system.stop)
        _start_actors(base, parts)
        servers = await stack.enter_async_context(AsyncExitStack())
        await parts.system.processes.until_filled()  # a list or a reset decision needs all processes
        reach("start: actors there")
        api = await serve(servers, base, parts)
        reach("start: serving")
        _take_up(base, parts)
        parts.operations.set_ready()
        await _start_events(servers, base, parts)
        reach("start: ready")
        address = base.facts.get("address", "off")
        ready = "Hermes {} is ready: pid {}, home {}, model {}, API {}"
        logger.info(ready, __version__, os.getpid(), home.data_dir, base.models.chain[0].name, address)
        _start_tasks(servers, base, parts)
        yield _daemon(base, parts, api, workers=workers, servers=servers)
    left = [str(actor) for actor in live_actors()]
    if left:
        logger.error("actors still running after the shutdown: {}", ", ".join(left[:10]))


@asynccontextmanager
async def embedded(home: Home, config: Config, environ: Mapping[str, str]) -> AsyncIterator[None]:
    """Run a daemon inside another program: no signals, no API port; ready on entry."""
    async with running(home, config, environ, StopSwitch(embedded=True)) as daemon:
        yield
        await daemon.stop(StopRequest(reason="the program around it ends"))


def _start_actors(base: Foundation, parts: DaemonParts) -> None:
    parts.system.start(
        parts.agent.runner,
        connections=_connections(base, parts) if parts.adapters else [],
        without=[RESETS, SCHEDULER] if base.stop.embedded else [],
        memory_bytes=lambda: parts.operations.memory_bytes,
    )


def _connections(base: Foundation, parts: DaemonParts) -> list[ChildSpec]:
    from hermes.app.factories.chat import adapter_spec  # noqa: PLC0415 - not needed without a platform
    from hermes.app.factories.media import make_reception  # noqa: PLC0415

    return [
        adapter_spec(
            adapter,
            config=base.config,
            system=parts.system,
            commands=parts.commands(),
            reception=make_reception(adapter, base.config, base.home, base.environ),
            learn=parts.events.channels.note,
            access=parts.plugins.platforms.get(adapter.platform.name),
        )
        for adapter in parts.adapters
    ]


# ------------------------------------------------------------ work that earlier boots left open


def _take_up(base: Foundation, parts: DaemonParts) -> None:
    """Resume open work and follow the journal. An embedded daemon does neither."""
    if base.boot_record is None:
        return
    base.boot_record.was_ready = True
    if not base.stop:  # else the resumed work would be interrupted immediately
        _resume_open_work(base.boot_record.boot, base, parts)
    parts.search.start()


def _resume_open_work(boot: Boot, base: Foundation, parts: DaemonParts) -> None:
    """Resume what earlier boots left open. In a boot loop it waits for a message."""
    is_held = boot.is_loop(base.config.resume.boot_loop_starts)
    parts.system.hold(boot_loop=is_held)
    parts.system.take_up()
    log_previous_boot(boot, is_held=is_held)
    if is_held:
        base.facts["resume"] = boot_loop_notice(boot)
        asyncio.get_running_loop().call_later(LOOP_WITHIN_S, _end_boot_loop, base, parts)


def _end_boot_loop(base: Foundation, parts: DaemonParts) -> None:
    """Stop holding interrupted turns. Those that are held already wait for a message."""
    base.facts.pop("resume", None)
    parts.system.hold(boot_loop=False)


async def _start_events(stack: AsyncExitStack, base: Foundation, parts: DaemonParts) -> None:
    """Tell hooks that the daemon has started, and later that it stops; start BOOT.md. Not in a boot loop."""
    hooks = parts.events.hooks

    async def stop() -> None:
        hooks.fire(HookEvent.DAEMON_STOP, "", {"reason": "the daemon is stopping"})
        await hooks.close(min(_HOOKS_STOP_S, base.config.shutdown.drain_s))

    stack.push_async_callback(stop)
    hooks.fire(HookEvent.DAEMON_START, "", {"daemon_version": __version__, "epoch": base.engine.epoch})
    if base.boot_record is not None and not base.stop and "resume" not in base.facts:
        await parts.events.boot.start()


# ------------------------------------------------------------ background tasks


def _start_tasks(stack: AsyncExitStack, base: Foundation, parts: DaemonParts) -> None:
    """Start the tasks that run until the shutdown closes the servers."""
    system = parts.system

    def start(name: str, work: Coroutine[Any, Any, None]) -> None:
        stack.push_async_callback(_end, asyncio.create_task(work, name=name))

    start("loop lag", parts.loop_lag.run())
    if has_dashboard(base):
        start("live figures", parts.figures.run())
    start("pulse", parts.operations.pulse(system.sessions.round_trip))
    start("sandbox", _open_sandbox(parts))
    start("titles", parts.titles.run())
    start("skills", parts.skills.run())
    start("profile", parts.profile.run())
    if base.boot_record is None:
        return
    outputs = output_retention(base.config, parts.folders, system.sessions.conversation, system.processes)
    start("output retention", outputs.run())
    if base.config.otel.enabled:
        from hermes.app.factories.otel import make_exporter  # noqa: PLC0415 - off by default

        start("traces", make_exporter(base.config, system).run())
    if base.config.sessions.auto_prune:
        start("session retention", parts.retention.run(base.config.sessions.retention_days * _DAY_S))
    if parts.adapters:
        from hermes.app.factories.chat import keep_homes_posted, make_watch  # noqa: PLC0415

        watch = make_watch(system, parts.operations)
        back = banner(base.boot_record.boot, base.config)
        name = f"back:{base.engine.epoch}"
        start("home channels", keep_homes_posted(system.chat.homes, watch, name=name, text=back))


async def _open_sandbox(parts: DaemonParts) -> None:
    """Open the sandbox early, so that the log and the status report problems before the first tool runs."""
    try:
        await asyncio.to_thread(parts.sandbox)
        await parts.sandbox.serve_again(parts.system.processes)
    except ConfigError as error:
        logger.error("sandbox: {}", error)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()):
        logger.opt(exception=error).error("background task failed: {}", task.get_name())


# ------------------------------------------------------------ the running daemon


def _daemon(
    base: Foundation, parts: DaemonParts, api: ApiServer | None, *, workers: AsyncExitStack, servers: AsyncExitStack
) -> Daemon:
    shutdown = DaemonShutdown(
        config=base.config,
        system=parts.system,
        runner=parts.agent.runner,
        operations=parts.operations,
        close_servers=servers.aclose,
        close_workers=workers.aclose,
        write_clean_marker=_write_no_marker if base.boot_record is None else base.boot_record.write_clean_marker,
        api=api,
    )
    daemon = Daemon(
        home=base.home,
        config=base.config,
        environ=base.environ,
        facts=base.facts,
        secrets=base.secrets,
        system=parts.system,
        agent=parts.agent,
        operations=parts.operations,
        shutdown=shutdown,
        api=api,
    )
    if not base.stop.embedded:
        parts.operations.reloader = daemon.reload
    return daemon


async def _write_no_marker(request: StopRequest) -> None:
    """An embedded daemon keeps no boot record."""
