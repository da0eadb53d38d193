"""Command service: runs slash commands, the same for every surface.

Commands run immediately, also during a turn, unless they need the session to be idle. `run` never raises: an error
becomes a reply for the person.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from hermes.domain.access.role import Role
from hermes.domain.errors import BadInputError, HermesError, UnknownSessionError
from hermes.domain.goal.goal import GoalTerms
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.read.context_report import ContextReport
from hermes.domain.read.views import SessionView
from hermes.domain.session.protocol import SetGoal
from hermes.domain.session.state import Preferences, Session
from hermes.domain.values import replace
from hermes.ports.children import Subagents
from hermes.ports.given import Clock
from hermes.ports.job.jobs import Jobs
from hermes.ports.mcp_servers.mcp_control import McpServers
from hermes.ports.processes import ProcessList
from hermes.ports.prompt_files import PromptFiles
from hermes.ports.sessions import Sessions
from hermes.services.commands import (
    background,
    choices,
    conversation,
    earlier,
    handoff,
    home,
    knowledge,
    memory_command,
    recall_commands,
    skill_commands,
    trust,
    turn,
)
from hermes.services.commands.context import CheckpointList, CommandContext, CommandServices, Handler
from hermes.services.commands.mcp_servers import mcp_commands
from hermes.services.commands.progress import goal_command, rollback_command
from hermes.services.commands.registry import Parsed, SlashCommand, Unknown
from hermes.services.commands.reply import CommandCaller, CommandReply, refused
from hermes.services.commands.shown import ShownChoices
from hermes.services.context.context_service import ContextService
from hermes.services.events.user_commands import CommandTold, UserCommands
from hermes.services.jobs import job_command
from hermes.services.learning.skill_service import SkillService
from hermes.services.memory.memory_service import MemoryService
from hermes.services.profile.profile_service import ProfileService
from hermes.tools.session_scope import Conversations

_HANDLERS: Mapping[str, Handler] = {
    **conversation.HANDLERS,
    **earlier.HANDLERS,
    **turn.HANDLERS,
    **choices.HANDLERS,
    **knowledge.HANDLERS,
    **background.HANDLERS,
    **goal_command.HANDLERS,
    **rollback_command.HANDLERS,
    **home.HANDLERS,
    **handoff.HANDLERS,
    **trust.HANDLERS,
    **skill_commands.HANDLERS,
    **recall_commands.HANDLERS,
    **memory_command.HANDLERS,
    **job_command.HANDLERS,
    **mcp_commands.HANDLERS,
}


_TAKES_BACK = frozenset({"undo", "retry"})
_OF = {Role.OWNER: "the owner", Role.ADMIN: "the owner and the admins", Role.USER: "the users, not the guests,"}


def _refusal(command: SlashCommand, role: Role) -> str:
    article = "an" if role is Role.ADMIN else "a"
    return f"/{command.name} is for {_OF[command.needs]} of this Hermes. You are {article} {role} here."


async def _cannot_restart(_reason: str, _who: str) -> None:
    raise BadInputError("this daemon cannot be restarted")


class CommandService:
    def __init__(
        self,
        sessions: Sessions,
        *,
        new_turn_id: Callable[[], TurnId],
        clock: Clock,
        models: Callable[[], Sequence[str]],
        personalities: Callable[[], Sequence[str]],
        processes: ProcessList,
        model_problem: Callable[[str], str] = lambda _: "",
        context_window: Callable[[], int] = lambda: 0,
        configured: Callable[[], Preferences] = Preferences,
        restart: Callable[[str, str], Awaitable[None]] = _cannot_restart,
        prompt_files: PromptFiles | None = None,
        platforms: Callable[[], Sequence[Mapping[str, str]]] = tuple,
        skills: SkillService | None = None,
        stored: Conversations | None = None,
        memories: MemoryService | None = None,
        agents: Subagents | None = None,
        checkpoints: CheckpointList | None = None,
        set_goal: Callable[[SessionId, SetGoal], Awaitable[Session]] | None = None,
        goal_terms: Callable[[], GoalTerms] = GoalTerms,
        profile: ProfileService | None = None,
        context: ContextService | None = None,
        user_commands: UserCommands | None = None,
        told: CommandTold | None = None,
        scheduled: Jobs | None = None,
        mcp: McpServers | None = None,
    ) -> None:
        self._user_commands = user_commands
        self._told = told  # hears of every command that ran
        self._services = CommandServices(
            sessions=sessions,
            new_turn_id=new_turn_id,
            clock=clock,
            models=models,
            model_problem=model_problem,
            personalities=personalities,
            context_window=context_window,
            configured=configured,
            processes=processes,
            shown=ShownChoices(),
            restart=restart,
            prompt_files=prompt_files,
            platforms=platforms,
            skills=skills,
            stored=stored,
            memories=memories,
            agents=agents,
            checkpoints=checkpoints,
            set_goal=set_goal,
            goal_terms=goal_terms,
            profile=profile,
            context=context,
            user_commands=user_commands,
            jobs=scheduled,
            mcp=mcp,
        )

    async def context_report(self, session: Session) -> ContextReport | None:
        """Return what fills the context window; None: nothing here can tell."""
        return None if self._services.context is None else await self._services.context.report(session)

    def personalities(self) -> Sequence[str]:
        return self._services.personalities()

    def added(self, role: Role) -> list[SlashCommand]:
        """Return the commands of the owner and of plugins that this role may use."""
        return [] if self._user_commands is None else self._user_commands.listed(role)

    def says(self, parsed: Parsed | Unknown, role: Role) -> bool:
        """Return whether a command submits a message, which its session takes once. Others run at most once."""
        parsed = self.resolved(parsed, role)
        if isinstance(parsed, Parsed):
            return parsed.command.says
        own = None if self._user_commands is None else self._user_commands.find(parsed.word)
        return own is None or own[0].says

    async def run(self, parsed: Parsed | Unknown, caller: CommandCaller) -> CommandReply:
        reply = await self._found(parsed, caller)
        if self._told is not None:
            name = parsed.word if isinstance(parsed, Unknown) else parsed.command.name
            self._told(name, parsed.argument, reply.session or caller.session or "", caller.source.by, reply.ok)
        return reply

    async def _found(self, parsed: Parsed | Unknown, caller: CommandCaller) -> CommandReply:
        parsed = self.resolved(parsed, caller.role)
        if isinstance(parsed, Unknown):
            return (
                await self._run_own(parsed, caller) or await self._run_skill(parsed, caller) or refused(parsed.advice)
            )
        if not caller.role.includes(parsed.command.needs):
            return refused(_refusal(parsed.command, caller.role))
        try:
            return await self._run(parsed, caller)
        except HermesError as error:
            return refused(f"/{parsed.command.name} failed: {str(error).rstrip('.')}.")

    def resolved(self, command: Parsed | Unknown, role: Role) -> Parsed | Unknown:
        """Return the command that an alias of the configuration means, for a caller who may use it."""
        if not isinstance(command, Unknown) or self._user_commands is None:
            return command
        return self._user_commands.alias(command, role) or command

    async def _run_own(self, unknown: Unknown, caller: CommandCaller) -> CommandReply | None:
        """Run the command of this name that the owner or a plugin added; None if there is none."""
        own = None if self._user_commands is None else self._user_commands.find(unknown.word)
        if own is None:
            return None
        command, run = own
        if not caller.role.includes(command.needs):
            return refused(_refusal(command, caller.role))
        try:
            return await run(await self._context(Parsed(command=command, argument=unknown.argument), caller))
        except HermesError as error:
            return refused(f"/{unknown.word} failed: {str(error).rstrip('.')}.")

    async def _run_skill(self, unknown: Unknown, caller: CommandCaller) -> CommandReply | None:
        """Load the skill of this name into a turn; None if the caller has no such skill."""
        skills = self._services.skills
        if skills is None or not caller.role.includes(Role.USER) or not await skills.has(unknown.word):
            return None
        command = skill_commands.command_of(unknown.word)
        try:
            return await skill_commands.load(
                await self._context(Parsed(command=command, argument=unknown.argument), caller), skills
            )
        except HermesError as error:
            return refused(f"/{unknown.word} failed: {str(error).rstrip('.')}.")

    async def _run(self, parsed: Parsed, caller: CommandCaller) -> CommandReply:
        context = await self._context(parsed, caller)
        session = context.session
        if session is not None and parsed.command.needs_rest and (problem := conversation.busy_with(session)):
            return refused(problem)
        reply = await _HANDLERS[parsed.command.name](context)
        if parsed.command.name in _TAKES_BACK and session is not None and reply.ok and self._services.skills:
            self._services.skills.runs.take_back(session.id)
        if reply.session is None and session is not None and caller.session not in (None, session.id):
            return replace(reply, session=session.id)  # the caller gave an earlier id of this conversation
        return reply

    async def _context(self, parsed: Parsed, caller: CommandCaller) -> CommandContext:
        view = await self._view(caller)
        session = None if view is None else view.session
        return CommandContext(
            services=self._services,
            parsed=parsed,
            caller=caller,
            session=session,
            why="" if view is None else view.why,
            reset="" if view is None else view.reset,
        )

    async def _view(self, caller: CommandCaller) -> SessionView | None:
        session = caller.session
        if session is None and caller.key is not None:
            session = await self._services.sessions.bound(caller.key)
        if session is None:
            return None
        with suppress(UnknownSessionError):  # unused id: most commands need no session
            return await self._services.sessions.view(session)
        return None
