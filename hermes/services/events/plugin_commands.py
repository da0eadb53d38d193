"""Slash commands of plugins, and the commands of several sources as one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from loguru import logger

from hermes.domain.access.role import Role
from hermes.services.commands.context import CommandContext, Handler
from hermes.services.commands.registry import CommandGroup, Parsed, SlashCommand, Unknown
from hermes.services.commands.reply import CommandReply, refused
from hermes.services.events.user_commands import UserCommands

if TYPE_CHECKING:
    from hermes.plugin.api import PluginCommand

_TIMEOUT_S: Final = 60.0


class PluginCommands(UserCommands):
    def __init__(self, commands: Sequence[PluginCommand]) -> None:
        self._commands = {each.name: each for each in commands}

    def find(self, word: str) -> tuple[SlashCommand, Handler] | None:
        command = self._commands.get(word.lower())
        return None if command is None else (_slash_command(command), partial(_run, command))

    def alias(self, unknown: Unknown, role: Role) -> Parsed | Unknown | None:  # noqa: ARG002 - plugins have none
        return None

    def listed(self, role: Role) -> list[SlashCommand]:
        return [_slash_command(each) for each in self._commands.values() if role.includes(each.needs)]


def _slash_command(command: PluginCommand) -> SlashCommand:
    return SlashCommand(
        name=command.name,
        group=CommandGroup.KNOW,
        usage=command.usage,
        help=command.help,
        needs=command.needs,
    )


async def _run(command: PluginCommand, context: CommandContext) -> CommandReply:
    from hermes.plugin.api import CommandCall  # noqa: PLC0415 - only where plugins are enabled

    source = context.caller.source
    call = CommandCall(
        name=command.name,
        argument=context.argument,
        session="" if context.session is None else context.session.id,
        platform=source.platform,
        user=source.user,
        role=context.caller.role,
    )
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            return CommandReply(text=str(await command.handler(call)))
    except TimeoutError:
        return refused(f"/{command.name} did not end within {_TIMEOUT_S:g} s.")
    except Exception as error:  # noqa: BLE001 - the outermost call of a plugin's command
        logger.opt(exception=error).error("plugin: /{} failed", command.name)
        return refused(f"/{command.name} failed: {type(error).__name__}.")


class SeveralCommands(UserCommands):
    """Commands of several sources. The first source with a name has it."""

    def __init__(self, *sources: UserCommands) -> None:
        self._sources = sources

    def find(self, word: str) -> tuple[SlashCommand, Handler] | None:
        return next((found for each in self._sources if (found := each.find(word)) is not None), None)

    def alias(self, unknown: Unknown, role: Role) -> Parsed | Unknown | None:
        return next((found for each in self._sources if (found := each.alias(unknown, role)) is not None), None)

    def listed(self, role: Role) -> list[SlashCommand]:
        found = {each.name: each for source in reversed(self._sources) for each in source.listed(role)}
        return list(found.values())
