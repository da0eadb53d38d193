"""Quick commands: runs the slash commands that the owner wrote into the configuration."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hermes.domain.access.role import Role
from hermes.domain.event.hook import Hook
from hermes.domain.event.quick_command import QuickCommand, QuickKind, filled
from hermes.services.commands.context import CommandContext, Handler
from hermes.services.commands.registry import CommandGroup, Parsed, SlashCommand, Unknown, parse
from hermes.services.commands.reply import CommandReply, refused
from hermes.services.commands.turn import submit
from hermes.services.events.hook_runner import HookRunner
from hermes.services.events.user_commands import UserCommands

_MAX_SHOWN = 3500  # characters of a command's output, for a chat


class QuickCommands(UserCommands):
    def __init__(self, commands: Sequence[QuickCommand], *, runner: HookRunner) -> None:
        self._commands = {each.name: each for each in commands}
        self._runner = runner

    def find(self, word: str) -> tuple[SlashCommand, Handler] | None:
        """Return a command that runs something, and its handler."""
        quick = self._commands.get(word.lower())
        if quick is None:
            return None
        return self._slash_command(quick), partial(self._run, quick)

    def alias(self, unknown: Unknown, role: Role) -> Parsed | Unknown | None:
        """Return the command that an alias means. An alias of an alias means nothing."""
        quick = self._commands.get(unknown.word.lower())
        if quick is None or quick.kind is not QuickKind.ALIAS or not role.includes(quick.needs):
            return None
        target = filled(quick.text.strip(), unknown.argument)
        found = parse(target if target.startswith("/") else f"/{target}")
        return None if isinstance(found, Unknown) and found.word.lower() in self._commands else found

    def _slash_command(self, quick: QuickCommand) -> SlashCommand:
        return SlashCommand(
            name=quick.name,
            group=CommandGroup.KNOW,
            usage="[text]",
            help=quick.help or f"Quick command ({quick.kind})",
            needs=quick.needs,
            says=quick.kind is QuickKind.PROMPT,
        )

    def listed(self, role: Role) -> list[SlashCommand]:
        """Return the commands of a role, for help and menus."""
        return [self._slash_command(each) for each in self._commands.values() if role.includes(each.needs)]

    async def _run(self, quick: QuickCommand, context: CommandContext) -> CommandReply:
        if quick.kind is QuickKind.ALIAS:
            return refused(f"/{quick.name} means {quick.text}, which is no command.")
        if quick.kind is QuickKind.PROMPT:
            return await submit(context, filled(quick.text, context.argument), "")
        hook = Hook(name=quick.name, on=(), argv=_argv(quick, context.argument), timeout_s=quick.timeout_s)
        output, problem = await self._runner.output(hook)
        text = output.strip()
        if len(text) > _MAX_SHOWN:
            text = f"{text[:_MAX_SHOWN]}\n… ({len(text) - _MAX_SHOWN} more characters)"
        if problem:
            return refused(f"/{quick.name} {problem}." + (f"\n{text}" if text else ""))
        return CommandReply(text=text or f"/{quick.name} is done.")


def _argv(quick: QuickCommand, argument: str) -> tuple[str, ...]:
    """Return the program: the argument is `$1`, and is never part of the command's text."""
    return ("/bin/sh", "-c", quick.text, quick.name, argument)
