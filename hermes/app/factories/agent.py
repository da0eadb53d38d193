"""Factory of the agent: models, limits, prices and budgets, and the tools that the first turn loads."""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from loguru import logger

from hermes.actors.process.process_services import Announcement
from hermes.agent.accounting import Budget
from hermes.agent.approval_judge import ApprovalJudge, JudgeSettings
from hermes.agent.compression import CompressionSettings
from hermes.agent.image_policy import ImagePolicy
from hermes.agent.ledger import Ledger
from hermes.agent.model_step import ModelStep, ThinkingSettings
from hermes.agent.models.endpoint_proxy import EndpointProxy, ProxyTarget
from hermes.agent.models.health import ModelHealth
from hermes.agent.models.model_set import ModelSet
from hermes.agent.runner import AgentRunner
from hermes.agent.summariser import Summariser, SummarySettings
from hermes.agent.tool_step import Folders, ToolStep
from hermes.app.actor_system import ActorSystem
from hermes.app.factories.mcp_client.lazy_mcp import LazyMcp
from hermes.app.factories.memory import memory_settings
from hermes.app.factories.models import choice_of, review_model, terms_of, title_model
from hermes.app.factories.provider_proxy import proxy_target
from hermes.app.factories.recall.profile import believed, profile_settings
from hermes.app.factories.sandbox import SandboxOpener
from hermes.app.factories.work.checkpoints import CheckpointBook
from hermes.app.factories.work.children import ChildPurposes
from hermes.config.home import Home
from hermes.config.settings import Config
from hermes.domain.access.role import Role
from hermes.domain.errors import ConfigError, HermesError
from hermes.domain.session.state import Preferences
from hermes.domain.values import replace
from hermes.ports.channels import Channels
from hermes.ports.processes import Processes
from hermes.services.children.review_purpose import ReviewSettings
from hermes.services.events.event_services import EventServices
from hermes.services.learning.skill_service import SkillService
from hermes.services.memory.memory_service import MemoryService
from hermes.services.profile.profile_service import ProfileService
from hermes.services.recall.search_summary import SearchSummary
from hermes.services.recall.turn_recall import TurnRecall
from hermes.services.side_completion import SideCompletion
from hermes.system.clock import wall
from hermes.system.random_id import new_marker
from hermes.tools.session_scope import Conversations
from hermes.tools.terminal.output_retention import Conversation, OutputRetention, RetentionLimits

if TYPE_CHECKING:
    from hermes.app.factories.turn_environment import PreparedTurn
    from hermes.tools.tool import Tool

T = TypeVar("T")
_DAY_S = 86_400.0
_TO_END_S = 60.0  # time for a command to end after its timeout


def thinking_settings(config: Config) -> ThinkingSettings:
    return ThinkingSettings(
        max_replies=config.agent.max_turns,
        compression=compression_settings(config),
        compress=config.compression.enabled,
        vision=config.model.vision,
        vision_model=config.auxiliary.vision,
        reasoning=config.model.reasoning,
        terms=lru_cache(partial(terms_of, config)),
        choice=lambda text, place: choice_of(text or config.model.for_chat(place), config.model),
    )


def alias_names(config: Config) -> tuple[str, ...]:
    return tuple(alias.partition("=")[0] for alias in config.model.aliases)


def summary_settings(config: Config) -> SummarySettings:
    return SummarySettings(
        compression=compression_settings(config),
        model=config.auxiliary.summary or config.compression.model,
        timeout_s=config.compression.timeout_s,
        terms=lru_cache(partial(terms_of, config)),
        choice=lambda text: choice_of(text, config.model),
    )


def judge_settings(config: Config) -> JudgeSettings:
    return JudgeSettings(
        model=config.auxiliary.approval,
        kinds=config.approvals.judged,
        terms=lru_cache(partial(terms_of, config)),
        choice=lambda text: choice_of(text, config.model),
    )


def compression_settings(config: Config) -> CompressionSettings:
    compression = config.compression
    return CompressionSettings(
        threshold=compression.threshold,
        floor_tokens=compression.floor_tokens,
        target_ratio=compression.target_ratio,
        protect_first_n=compression.protect_first_n,
    )


def budgets(config: Config) -> tuple[Budget, Budget]:
    """Return the budget of everything, and that of each guest."""
    names = [each.name for each in dataclasses.fields(Budget)]
    all_of_it, guest = ({name: getattr(config.budget, kind + name) for name in names} for kind in ("", "guest_"))
    return Budget(**all_of_it), Budget(**guest)


def review_settings(config: Config) -> ReviewSettings:
    memory = config.memory
    return ReviewSettings(
        model=review_model(config) or "",
        max_steps=memory.review_max_steps,
        max_tokens=memory.review_max_tokens,
        max_usd=memory.review_max_usd,
        notify=memory.memory_notifications,
        off=review_model(config) is None,
    )


def folders_of(home: Home) -> Folders:
    return Folders(home.data_dir / "work", home.media_dir, home.skills_dir)


def output_retention(
    config: Config, folders: Folders, conversation: Conversation, processes: Processes
) -> OutputRetention:
    limits = RetentionLimits(
        keep_s=config.tools.output_keep_days * _DAY_S,
        total_bytes=config.tools.output_max_total_mb << 20,
        longest_command_s=config.terminal.max_timeout_s + _TO_END_S,
    )
    return OutputRetention(
        folders.root,
        limits=limits,
        conversation=conversation,
        has_processes=lambda root: any(view.ended_at is None for view in processes.views(root)),
        clock=wall,
    )


# ---------------------------------------------------------------- put together


class Prepared(Generic[T]):
    """Value that is expensive to make. The first call makes it in a thread."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: asyncio.Task[T] | None = None
        self.after: Callable[[T], Awaitable[None]] | None = None  # called with the value each time it is asked for

    async def __call__(self) -> T:
        if self._made is None:
            self._made = asyncio.create_task(asyncio.to_thread(self._make))
        made = await asyncio.shield(self._made)
        if self.after is not None:
            await self.after(made)
        return made


def preferences(config: Config) -> Preferences:
    """Return the configured choices that a conversation can change."""
    return Preferences(
        personality=config.agent.personality, reasoning=config.model.reasoning, busy=config.agent.busy_input_mode
    )


@dataclasses.dataclass(slots=True, kw_only=True)
class AgentParts:
    runner: AgentRunner
    thinking: ModelStep
    summarising: Summariser
    judge: ApprovalJudge
    ledger: Ledger
    health: ModelHealth
    proxy: EndpointProxy
    side: SideCompletion
    target: Callable[[Config], ProxyTarget | None]
    memories: MemoryService
    review: ReviewSettings
    tool_names: Callable[[str, Role], Awaitable[tuple[str, ...]]]  # on a platform, for a role
    children: ChildPurposes
    checkpoints: CheckpointBook
    profile: ProfileService
    tool_schemas: Callable[[str, Role, tuple[str, ...] | None], Awaitable[bytes]]  # the same, or only some of them
    workshop: Callable[[], Awaitable[PreparedTurn]]
    mcp: LazyMcp
    defaults: Preferences  # what applies unless a conversation has chosen
    aliases: tuple[str, ...] = ()
    recalls: bool = False  # search earlier conversations before each turn
    search_model: str = ""  # summarises what session_search finds; empty: none does
    profile_model: str = ""  # draws conclusions about people; empty: the configured model
    title_model: str | None = None  # as `title_model` in `hermes/app/factories/models.py`

    def context_window(self) -> int:
        """Return the context window of the configured model."""
        first = self.runner.first_model
        return self.thinking.settings.terms(first.provider, first.name).context_window

    def model_names(self) -> list[str]:
        """Return the names of the configured models and the aliases, first choice first."""
        return [*self.runner.model_names(), *self.aliases]

    def model_problem(self, text: str) -> str:
        """Return why `[PROVIDER:]MODEL` or an alias cannot be used; empty if it can."""
        try:
            self.runner.models.chain_for(self.thinking.settings.choice(text, ""))
        except ConfigError as error:
            return str(error)
        return ""

    def configure(self, config: Config) -> None:
        """Apply the settings that can change at run time."""
        self.thinking.settings = thinking_settings(config)
        self.summarising.settings = summary_settings(config)
        self.judge.settings = judge_settings(config)
        self.ledger.budget, self.ledger.guest_budget = budgets(config)
        self.runner.set_max_concurrent(config.turns.max_concurrent)
        self.runner.set_patience(config.model.patience_s)
        self.proxy.use(self.target(config))
        self.title_model = title_model(config)
        self.search_model = config.auxiliary.search
        self.recalls = config.memory.recall
        self.profile_model = config.auxiliary.profile
        self.profile.settings = replace(profile_settings(config), provider=self.profile.settings.provider)
        self.memories.settings = memory_settings(config)
        self.review = review_settings(config)
        self.children.configure(config)
        self.mcp.configure(config.mcp_servers)
        self.aliases = alias_names(config)
        in_force = self.defaults.personality  # a change needs a restart
        self.defaults = dataclasses.replace(preferences(config), personality=in_force)

    def health_facts(self) -> dict[str, Any]:
        return {
            **self.health.facts(),
            "paused_endpoints": self.runner.open_circuits(),
            "context_window": self.context_window(),
        }


async def make_agent(
    config: Config,
    home: Home,
    environ: Mapping[str, str],
    *,
    models: ModelSet,
    system: ActorSystem,
    stored: Conversations,
    sandbox: SandboxOpener,
    skills: SkillService,
    memories: MemoryService,
    profile: ProfileService,
    events: EventServices,
    plugin_tools: tuple[Tool, ...] = (),
    mcp: LazyMcp,
) -> AgentParts:
    hub, folders = system.ports.hub, folders_of(home)
    hooks = system.inner_calls.hooks = events.hooks if events.hooks.hooks else None
    checkpoints = CheckpointBook(config, home, folders, wall)
    workshop = Prepared(
        partial(
            _prepare_turn,
            config,
            home,
            environ,
            system=system,
            stored=stored,
            sandbox=sandbox,
            skills=skills,
            memories=memories,
            profile=profile,
            summarise=SearchSummary(
                side=lambda: parts.side,
                model=lambda: parts.search_model,
                new_turn_id=system.ports.ids.turn,
                marker=new_marker,
            ),
            channels=events.channels,
            plugin_tools=plugin_tools,
            checkpoints=checkpoints,
            tell=_from_thread(system.notices.announce),
        )
    )
    workshop.after = mcp.prepare_turn

    async def tool_names(platform: str, role: Role) -> tuple[str, ...]:
        return (await workshop()).toolbox.names(platform, role)

    async def tool_schemas(platform: str, role: Role, only: tuple[str, ...] | None) -> bytes:
        return (await workshop()).toolbox.schemas(platform, role, only)

    budget, guest_budget = budgets(config)
    ledger = Ledger(budget=budget, guest_budget=guest_budget, clock=wall)
    ledger.load(await system.ports.journal.fetch(lambda reader: reader.tallies(ledger.today())))
    judge = ApprovalJudge(settings=judge_settings(config), ledger=ledger, new_marker=new_marker)
    thinking = ModelStep(
        settings=thinking_settings(config),
        workshop=workshop,
        folders=folders,
        ledger=ledger,
        hub=hub,
        sight=ImagePolicy(home.media_dir),
        judge=judge,
        recall=TurnRecall(stored=stored, is_on=lambda: parts.recalls, marker=new_marker),
        family=system.delegations.spent_with,
        hooks=hooks,
    )
    summarising = Summariser(settings=summary_settings(config), folders=folders, ledger=ledger, clock=wall)
    health = ModelHealth(clock=wall)
    runner = AgentRunner(
        models=models,
        thinking=thinking,
        acting=ToolStep(workshop=workshop, folders=folders, hub=hub, hooks=hooks),
        summarising=summarising,
        max_concurrent=config.turns.max_concurrent,
        random=secrets.SystemRandom().random,
        health=health,
    )
    runner.set_patience(config.model.patience_s)
    parts = AgentParts(
        runner=runner,
        thinking=thinking,
        summarising=summarising,
        judge=judge,
        ledger=ledger,
        health=health,
        proxy=EndpointProxy(proxy_target(config, environ)),
        target=partial(proxy_target, environ=environ),
        title_model=title_model(config),
        profile_model=config.auxiliary.profile,
        memories=memories,
        profile=profile,
        side=SideCompletion(agent=runner, count=system.sessions.count, clock=system.ports.clock),
        search_model=config.auxiliary.search,
        recalls=config.memory.recall,
        review=review_settings(config),
        tool_names=tool_names,
        children=ChildPurposes(config, system=system, folders=folders, workshop=workshop),
        checkpoints=checkpoints,
        tool_schemas=tool_schemas,
        workshop=workshop,
        mcp=mcp,
        aliases=alias_names(config),
        defaults=preferences(config),
    )
    mcp.side = parts.side
    return parts


def _prepare_turn(
    config: Config,
    home: Home,
    environ: Mapping[str, str],
    *,
    system: ActorSystem,
    stored: Conversations,
    sandbox: SandboxOpener,
    skills: SkillService,
    memories: MemoryService,
    profile: ProfileService,
    summarise: SearchSummary,
    channels: Channels,
    plugin_tools: tuple[Tool, ...],
    checkpoints: CheckpointBook,
    tell: Callable[[Announcement], None],
) -> PreparedTurn:
    from hermes.app.factories import turn_environment  # noqa: PLC0415 - slow, and not needed before the first turn
    from hermes.tools.send_message import send_message_tool  # noqa: PLC0415

    return turn_environment.make_turn_environment(
        config,
        home,
        environ,
        stored=stored,
        processes=system.processes,
        clock=wall,
        sandbox=sandbox,
        library=skills.library(),
        skills=skills.editor,
        memories=memories,
        summarise=summarise,
        delegations=system.delegations,
        believed=believed(profile),
        messaging=send_message_tool(channels, system.chat.post),
        inner=system.inner_calls,
        plugin_tools=plugin_tools,
        before=checkpoints.before,
        tell=tell,
        jobs=system.jobs.service,
    )


def _from_thread(tell: Callable[[Announcement], Awaitable[None]]) -> Callable[[Announcement], None]:
    """Return a function that threads call to run `tell` on this event loop. It does not wait."""
    loop = asyncio.get_running_loop()

    async def announce_or_log(said: Announcement) -> None:
        try:
            await tell(said)
        except HermesError as error:
            logger.warning("session {}: could not announce {}: {}", said.session, said.id, error)

    def post(said: Announcement) -> None:
        asyncio.run_coroutine_threadsafe(announce_or_log(said), loop)

    return post
