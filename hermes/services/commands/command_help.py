"""Help about slash commands, for a role or for one command."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.domain.access.role import Role
from hermes.services.commands.registry import COMMANDS, CommandGroup, SlashCommand, Unknown, find, nearest

GREETING = (
    "Hello! I am Hermes. Write to me: I remember our conversation and continue it after a restart.\n\n"
    "/new starts a new conversation\n/stop stops the running turn\n/status shows the state\n/help lists all commands"
)


def help_text(
    name: str | None = None,
    *,
    narrow: bool = False,
    role: Role = Role.OWNER,
    added: Sequence[SlashCommand] = (),
) -> str:
    """Return the help for a role, or for one command. `narrow` avoids columns, for phones.

    `added`: commands of the owner and of plugins.
    """
    if name is None:
        shown = [*(command for command in COMMANDS if role.includes(command.needs)), *added]
        of_group = _narrow_help_of_group if narrow else _help_of_group
        groups = (of_group(group, [each for each in shown if each.group is group]) for group in CommandGroup)
        return "\n\n".join([*groups, *(["/help COMMAND shows more."] if narrow else [])])
    word = name.strip().removeprefix("/").lower()
    command = find(name) or next((each for each in added if each.name == word), None)
    if command is None:
        word = name.strip().removeprefix("/").lower()[:32]
        return Unknown(word=word, suggestion=nearest(word)).advice
    lines = [command.written, f"{command.help}."]
    if command.details:
        lines.append(command.details)
    if command.aliases:
        lines.append("Also " + ", ".join(f"/{alias}" for alias in command.aliases) + ".")
    if command.needs_rest:
        lines.append("Not available while a turn runs.")
    return "\n".join(lines)


def _help_of_group(group: CommandGroup, members: Sequence[SlashCommand]) -> str:
    width = max(len(_short(command)) for command in COMMANDS)
    return "\n".join([group.value, *(f"  {_short(command):<{width}}  {command.help}" for command in members)])


def _narrow_help_of_group(group: CommandGroup, members: Sequence[SlashCommand]) -> str:
    return "\n".join(
        [f"**{group.value}**", *(f"/{command.name}: {_uncapitalised(command.help)}" for command in members)]
    )


def _uncapitalised(text: str) -> str:
    return text[:1].lower() + text[1:]


def _short(command: SlashCommand) -> str:
    """Return the usage, shortened if it would push the help column to the right."""
    return command.written if len(command.written) <= 26 else f"/{command.name} [...]"
