"""Command service: runs slash commands, the same for every surface.

Commands run immediately, also during a turn, unless they need the session to be idle. `run` never raises: an error
becomes a reply for the person.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from hermes.domain.access.role import Role
from hermes.domain.errors import BadInputError, HermesError, UnknownSessionError
from hermes.domain.ids import TurnId
from hermes.domain.read.views import SessionView
from hermes.domain.session.state import Preferences
from hermes.domain.values import replace
from hermes.ports.given import Clock
from hermes.ports.processes import ProcessList
from hermes.ports.prompt_files import PromptFiles
from hermes.ports.sessions import Sessions
from hermes.services.commands import background, choices, conversation, earlier, handoff, home, knowledge, trust, turn
from hermes.services.commands.context import CommandContext, CommandServices, Handler
from hermes.services.commands.registry import Parsed, SlashCommand, Unknown
from hermes.services.commands.reply import CommandCaller, CommandReply, refused
from hermes.services.commands.shown import ShownChoices

_HANDLERS: Mapping[str, Handler] = {
    **conversation.HANDLERS,
    **earlier.HANDLERS,
    **turn.HANDLERS,
    **choices.HANDLERS,
    **knowledge.HANDLERS,
    **background.HANDLERS,
    **home.HANDLERS,
    **handoff.HANDLERS,
    **trust.HANDLERS,
}


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
    ) -> None:
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
        )

    def personalities(self) -> Sequence[str]:
        return self._services.personalities()

    async def run(self, parsed: Parsed | Unknown, caller: CommandCaller) -> CommandReply:
        if isinstance(parsed, Unknown):
            return refused(parsed.advice)
        if not caller.role.includes(parsed.command.needs):
            return refused(_refusal(parsed.command, caller.role))
        try:
            return await self._run(parsed, caller)
        except HermesError as error:
            return refused(f"/{parsed.command.name} failed: {str(error).rstrip('.')}.")

    async def _run(self, parsed: Parsed, caller: CommandCaller) -> CommandReply:
        view = await self._view(caller)
        session = None if view is None else view.session
        context = CommandContext(
            services=self._services,
            parsed=parsed,
            caller=caller,
            session=session,
            why="" if view is None else view.why,
            reset="" if view is None else view.reset,
        )
        if session is not None and parsed.command.needs_rest and (problem := conversation.busy_with(session)):
            return refused(problem)
        reply = await _HANDLERS[parsed.command.name](context)
        if reply.session is None and session is not None and caller.session not in (None, session.id):
            return replace(reply, session=session.id)  # the caller gave an earlier id of this conversation
        return reply

    async def _view(self, caller: CommandCaller) -> SessionView | None:
        session = caller.session
        if session is None and caller.key is not None:
            session = await self._services.sessions.bound(caller.key)
        if session is None:
            return None
        with suppress(UnknownSessionError):  # unused id: most commands need no session
            return await self._services.sessions.view(session)
        return None
