"""Context of one command: request, caller, conversation and the services that handlers use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from hermes.domain.access.role import Role
from hermes.domain.cause.reason import with_person
from hermes.domain.checkpoint import Checkpoint, Rollback
from hermes.domain.goal.goal import GoalTerms
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.session.protocol import SetGoal
from hermes.domain.session.state import Phase, Preferences, Session
from hermes.domain.values import dataclass
from hermes.ports.children import Subagents
from hermes.ports.given import Clock
from hermes.ports.job.jobs import Jobs
from hermes.ports.mcp_servers.mcp_control import McpServers
from hermes.ports.processes import ProcessList
from hermes.ports.prompt_files import PromptFiles
from hermes.ports.sessions import Sessions
from hermes.services.commands.registry import Parsed
from hermes.services.commands.reply import CommandCaller, CommandReply, refused
from hermes.services.commands.shown import ShownChoices
from hermes.services.commands.wording import Default
from hermes.services.context.context_service import ContextService
from hermes.services.events.user_commands import UserCommands
from hermes.services.learning.skill_service import SkillService
from hermes.services.memory.memory_service import MemoryService
from hermes.services.profile.profile_service import ProfileService
from hermes.tools.session_scope import Conversations


class CheckpointList(Protocol):
    """Checkpoints of a conversation, by its first session and the role of a person. Raises HermesErrors only."""

    async def listed(self, root: SessionId, role: Role) -> list[Checkpoint]: ...
    async def compare(self, root: SessionId, role: Role, number: int) -> Rollback: ...
    async def restore(self, root: SessionId, role: Role, number: int) -> Rollback: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandServices:
    """Services that the command handlers use."""

    sessions: Sessions
    new_turn_id: Callable[[], TurnId]
    clock: Clock
    models: Callable[[], Sequence[str]]  # known names and aliases, the configured one first
    model_problem: Callable[[str], str]  # why `[PROVIDER:]MODEL` cannot be used; empty if it can
    personalities: Callable[[], Sequence[str]]
    context_window: Callable[[], int]
    configured: Callable[[], Preferences]  # what applies unless the conversation has chosen
    processes: ProcessList
    shown: ShownChoices
    restart: Callable[[str, str], Awaitable[None]]  # takes the reason and the person
    prompt_files: PromptFiles | None = None
    skills: SkillService | None = None
    profile: ProfileService | None = None
    stored: Conversations | None = None  # for searches; limited by `Scope`
    memories: MemoryService | None = None
    agents: Subagents | None = None
    checkpoints: CheckpointList | None = None
    set_goal: Callable[[SessionId, SetGoal], Awaitable[Session]] | None = None
    goal_terms: Callable[[], GoalTerms] = GoalTerms
    context: ContextService | None = None
    user_commands: UserCommands | None = None
    jobs: Jobs | None = None
    mcp: McpServers | None = None
    platforms: Callable[[], Sequence[Mapping[str, str]]] = tuple  # name, state and problem of each

    def default(self) -> Default:
        return Default(model=next(iter(self.models()), ""), context_window=self.context_window())


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    services: CommandServices
    parsed: Parsed
    caller: CommandCaller
    session: Session | None = None  # live end of the conversation; None if there is none yet
    why: str = ""
    reset: str = ""  # next reset and what delays it

    @property
    def argument(self) -> str:
        return self.parsed.argument

    @property
    def sessions(self) -> Sessions:
        return self.services.sessions

    @property
    def open(self) -> Session | None:
        """The conversation unless it has ended."""
        return None if self.session is None or self.session.phase is Phase.ENDED else self.session

    @property
    def typed(self) -> str:
        """The command's name as people type it."""
        return f"/{self.parsed.command.name}"

    @property
    def who(self) -> str:
        """Platform and user of the person who gave the command."""
        return self.caller.source.by

    @property
    def reason(self) -> str:
        """Command and person, for the journal."""
        return with_person(self.typed, self.who)

    async def opened(self) -> Session:
        """Return the conversation, opened if necessary: a preference can precede the first message."""
        if self.open is not None:
            return self.open
        ended = None if self.session is None else self.session.id
        return await self.sessions.begin(
            self.caller.source, session=ended or self.caller.session, key=self.caller.key
        )

    def reply(self, text: str, session: Session) -> CommandReply:
        """Reply with the session id if the conversation has moved to another session."""
        moved = self.session is None or session.id != self.session.id
        return CommandReply(text=text, session=session.id if moved else None)

    def usage(self, problem: str) -> CommandReply:
        return refused(f"{problem}\nUsage: {self.parsed.command.written}")


Handler = Callable[[CommandContext], Awaitable[CommandReply]]


def whole_number(text: str, *, low: int, high: int) -> int | None:
    """Parse a whole number in a range; None if it is not one."""
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        return None
    return int(text) if low <= int(text) <= high else None
