"""Parts of a daemon: the actor system, and what is made of the machine for it. Nothing here is started."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from loguru import logger

from hermes.actors.process.process_registry import ProcessRegistry
from hermes.actors.process.process_services import HostThreads
from hermes.agent.personality import PERSONALITIES
from hermes.agent.tool_step import Folders
from hermes.app.actor_system import ActorSystem, Ports, assemble
from hermes.app.factories.agent import AgentParts, folders_of, make_agent
from hermes.app.factories.events.event_factory import make_events
from hermes.app.factories.events.plugin_factory import Plugins, load_plugins
from hermes.app.factories.mcp_client.lazy_mcp import LazyMcp
from hermes.app.factories.memory import memory_settings
from hermes.app.factories.platform import make_adapters
from hermes.app.factories.preflight import preflight
from hermes.app.factories.prompt_files import TrustedPromptFiles
from hermes.app.factories.recall.embedding import embedder_of
from hermes.app.factories.recall.profile import make_profile
from hermes.app.factories.review import register_reviews
from hermes.app.factories.sandbox import SandboxOpener
from hermes.app.factories.skills import make_skills
from hermes.app.foundation import Foundation
from hermes.app.host.loop_lag import LoopLag
from hermes.app.host.notify import Notifier
from hermes.app.job_runs import register_jobs
from hermes.app.operations import DaemonOperations
from hermes.app.system_settings import system_settings
from hermes.config.log import redacted
from hermes.domain.ids import SessionId
from hermes.domain.read.context_report import PartSize
from hermes.ports.chat import ChatAdapter, ChatNames
from hermes.ports.given import IdSource
from hermes.processes.host import LinuxProcessHost
from hermes.services.event_hub import EventHub
from hermes.services.events.event_services import EventServices
from hermes.services.learning.skill_service import SkillService
from hermes.services.live_figures import LiveFigures
from hermes.services.memory.memory_service import MemoryService
from hermes.services.profile.profile_service import ProfileService
from hermes.services.retention import SessionRetention
from hermes.services.search import SearchService
from hermes.services.titles import TitleService
from hermes.services.turn_meter import TurnMeter
from hermes.storage.verify import verify
from hermes.system import clock as wall_clock
from hermes.system.random_id import RandomIds, new_session_id
from hermes.tools.session_scope import Conversations

if TYPE_CHECKING:
    from hermes.services.commands.service import CommandService


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DaemonParts:
    system: ActorSystem
    agent: AgentParts
    operations: DaemonOperations
    commands: Callable[[], CommandService]  # makes them with their first use
    adapters: Sequence[ChatAdapter]
    folders: Folders
    search: SearchService
    sandbox: SandboxOpener
    retention: SessionRetention
    loop_lag: LoopLag
    figures: LiveFigures
    titles: TitleService
    skills: SkillService
    profile: ProfileService
    events: EventServices
    plugins: Plugins


async def make_parts(stack: AsyncExitStack, base: Foundation) -> DaemonParts:
    """Make all parts. `stack` closes them in reverse order, when the actors have ended."""
    config, home = base.config, base.home
    adapters = [] if base.stop.embedded else make_adapters(config, base.environ)
    plugins = Plugins() if base.stop.embedded else await load_plugins(base)
    adapters += plugins.adapters(_log_failed_platform)
    for adapter in adapters:
        stack.push_async_callback(adapter.close)
    folders = folders_of(home)
    search = SearchService(
        home.data_dir / "index",
        engine=base.engine,
        embedder=embedder_of(config, base.environ),
        least_similarity=config.semantic.min_similarity,
    )
    threads = HostThreads()
    stack.push_async_callback(threads.close)
    turn_meter, loop_lag = TurnMeter(time.monotonic), LoopLag()
    hub = EventHub()
    hub.on(turn_meter.NOTED, turn_meter.note)
    ports = _ports(base, threads=threads, adapters=adapters, folders=folders, search=search, hub=hub)
    system = assemble(ports, system_settings(config, base.environ))
    stack.push_async_callback(system.close)
    stack.push_async_callback(search.stop)
    sandbox = SandboxOpener(config, home)
    stack.push_async_callback(sandbox.close)
    skills = make_skills(config, home, base.environ, system=system)
    hub.on(skills.runs.NOTED, skills.runs.note)
    events = await make_events(base, system, plugins)
    stack.push_async_callback(events.channels.close)
    events.channels.name_of.update(
        {each.platform.name: each.chat_name for each in adapters if isinstance(each, ChatNames)}
    )
    hub.on(events.hooks.NOTED, events.hooks.note)
    memories = MemoryService(
        journal=base.journal,
        directory=home.data_dir / "memories",
        clock=system.ports.clock,
        settings=memory_settings(config),
    )
    stored = Conversations(
        search=search.search,
        messages=system.sessions.around,
        recent=system.sessions.recent,
        heads=system.sessions.heads,
    )
    profile = make_profile(
        config, base.environ, system=system, side=lambda: agent.side, model=lambda: agent.profile_model
    )
    hub.on(profile.NOTED, profile.note)
    mcp = LazyMcp(config, home, base.environ, system)
    stack.push_async_callback(mcp.close)
    agent = await make_agent(
        config,
        home,
        base.environ,
        models=base.models,
        system=system,
        stored=stored,
        sandbox=sandbox,
        memories=memories,
        profile=profile,
        skills=skills,
        events=events,
        plugin_tools=plugins.tools,
        mcp=mcp,
    )
    stack.push_async_callback(agent.runner.close)
    register_reviews(system, agent, skills)
    register_jobs(
        system,
        home,
        workshop=agent.workshop,
        folders=folders,
        skills=skills,
        at_once=config.cron.max_parallel_jobs,
    )
    retention = _retention(system)
    titles = _titles(system, agent)
    hub.on(titles.NOTED, titles.note)
    operations = _operations(
        base,
        system,
        agent,
        search=search,
        sandbox=sandbox,
        retention=retention,
        turn_meter=turn_meter,
        loop_lag=loop_lag,
        events=events,
        skills=skills,
    )
    return DaemonParts(
        system=system,
        agent=agent,
        operations=operations,
        commands=cache(
            lambda: _commands(
                base, system, agent, operations, folders, skills=skills, stored=stored, profile=profile, events=events
            )
        ),
        adapters=adapters,
        folders=folders,
        search=search,
        sandbox=sandbox,
        retention=retention,
        loop_lag=loop_lag,
        figures=LiveFigures(operations.figures, system.ports.clock),
        titles=titles,
        plugins=plugins,
        skills=skills,
        profile=profile,
        events=events,
    )


def _log_failed_platform(name: str, error: Exception) -> None:
    logger.opt(exception=error).error("plugin: the platform {} could not be made", name)


def _titles(system: ActorSystem, agent: AgentParts) -> TitleService:
    return TitleService(
        sessions=system.sessions,
        side=agent.side,
        new_turn_id=system.ports.ids.turn,
        model=lambda: agent.title_model,
    )


def _retention(system: ActorSystem) -> SessionRetention:
    return SessionRetention(
        system.ports.journal,
        erase=system.sessions.erase_unused,
        has_processes=lambda root: any(view.ended_at is None for view in system.processes.views(root)),
        clock=system.ports.clock,
    )


def _ports(
    base: Foundation,
    *,
    threads: HostThreads,
    adapters: Sequence[ChatAdapter],
    folders: Folders,
    search: SearchService,
    hub: EventHub,
) -> Ports:
    async def erase(session: SessionId) -> None:
        await asyncio.to_thread(folders.remove, session)
        await search.forget(session)

    return Ports(
        journal=base.journal,
        hub=hub,
        host=LinuxProcessHost(base.home.data_dir / "processes"),
        threads=threads,
        registry=ProcessRegistry(),
        platforms={adapter.platform.name: adapter.platform for adapter in adapters},
        clock=wall_clock.wall,
        steady=time.monotonic,
        pulse=time.monotonic,
        random=random.random,
        ids=IdSource(session=new_session_id, turn=RandomIds().turn, process=_new_process_id),
        erase=erase,
        redact=redacted,
    )


def _operations(
    base: Foundation,
    system: ActorSystem,
    agent: AgentParts,
    *,
    search: SearchService,
    sandbox: SandboxOpener,
    retention: SessionRetention,
    turn_meter: TurnMeter,
    loop_lag: LoopLag,
    events: EventServices,
    skills: SkillService,
) -> DaemonOperations:
    return DaemonOperations(
        learned=partial(_learned, agent, skills),
        engine=base.engine,
        journal=base.journal,
        children=system.children,
        verify=partial(verify, base.home.store_dir),
        notifier=Notifier.from_environ(base.environ),
        stop=base.stop,
        facts=base.facts,
        turns=agent.runner.counts,
        model_health=agent.health_facts,
        search=search,
        retention=retention,
        turn_meter=turn_meter,
        loop_lag=loop_lag,
        processes=system.processes,
        child_figures=system.child_sessions.figures,
        job_figures=system.jobs.service.figures,
        job_facts=system.jobs.facts,
        clock=system.ports.clock,
        check_config=partial(preflight, base.home, base.environ),
        sandbox=sandbox.status,
        events=events.status,
        event_figures=events.figures,
        mcp=agent.mcp,
    )


def _commands(
    base: Foundation,
    system: ActorSystem,
    agent: AgentParts,
    operations: DaemonOperations,
    folders: Folders,
    *,
    skills: SkillService,
    stored: Conversations,
    profile: ProfileService,
    events: EventServices,
) -> CommandService:
    from hermes.services.commands.service import CommandService  # noqa: PLC0415 - an idle daemon runs none
    from hermes.services.context.context_service import ContextService  # noqa: PLC0415

    return CommandService(
        system.sessions,
        new_turn_id=system.ports.ids.turn,
        clock=system.ports.clock,
        models=agent.model_names,
        model_problem=agent.model_problem,
        personalities=lambda: tuple(PERSONALITIES),
        context_window=agent.context_window,
        configured=lambda: agent.defaults,
        processes=system.processes,
        restart=operations.request_restart,
        platforms=operations.platforms,
        prompt_files=TrustedPromptFiles(base.config, base.home, folders),
        skills=skills,
        stored=stored,
        memories=agent.memories,
        agents=system.delegations,
        checkpoints=agent.checkpoints,
        set_goal=system.sessions.set_goal,
        goal_terms=lambda: agent.children.goal_terms,
        profile=profile,
        context=ContextService(
            system.ports.journal, sizes=_sizes, schemas=agent.tool_schemas, window=agent.context_window
        ),
        user_commands=events.quick(),
        told=events.hooks.note_command if events.hooks.hooks else None,
        scheduled=system.jobs.service,
        mcp=agent.mcp,
    )


def _learned(agent: AgentParts, skills: SkillService) -> dict[tuple[str, str], int]:
    """Return how often memory, skills and beliefs were changed, and by whom."""
    counts = {"memory": agent.memories.counts, "skill": skills.editor.counts, "profile": agent.profile.counts}
    found = {(kind, str(by)): number for kind, each in counts.items() for by, number in each.items()}
    return {**found, ("skill", "rollback"): skills.rollbacks} if skills.rollbacks else found


def _sizes(**request: Any) -> tuple[PartSize, ...]:
    from hermes.services.context.context_meter import sizes  # noqa: PLC0415 - no start needs it

    return sizes(**request)


def _new_process_id() -> str:
    return f"proc_{secrets.token_hex(6)}"
