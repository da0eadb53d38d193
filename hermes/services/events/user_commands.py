"""Port of slash commands that the owner or a plugin adds. Built-in commands and their aliases come first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from hermes.domain.access.role import Role
from hermes.services.commands.registry import Parsed, SlashCommand, Unknown

if TYPE_CHECKING:
    from hermes.services.commands.context import Handler

# Takes name, argument, session, person, and if it succeeded.
CommandTold: TypeAlias = Callable[[str, str, str, str, bool], None]


class UserCommands(Protocol):
    def find(self, word: str) -> tuple[SlashCommand, Handler] | None:
        """Return the command of this name and its handler."""

    def alias(self, unknown: Unknown, role: Role) -> Parsed | Unknown | None:
        """Return the command that this one means; None if it is no alias, or not for this role."""

    def listed(self, role: Role) -> list[SlashCommand]:
        """Return the commands of a role, for help and menus."""
