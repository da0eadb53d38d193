"""Quick commands: slash commands of the owner that run a command, mean another command, or send a prompt. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from hermes.domain.access.role import Role
from hermes.domain.values import dataclass

ARGUMENT: Final = "{argument}"


class QuickKind(StrEnum):
    EXEC = "exec"  # runs a command, without a model
    ALIAS = "alias"  # means another slash command
    PROMPT = "prompt"  # sends a text to the agent


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickCommand:
    name: str
    kind: QuickKind
    text: str  # command, other slash command, or prompt
    help: str = ""
    needs: Role = Role.OWNER
    timeout_s: float = 30.0


def filled(text: str, argument: str) -> str:
    """Return the text with the argument in its place; without a place, after it."""
    if ARGUMENT in text:
        return text.replace(ARGUMENT, argument)
    return f"{text} {argument}".rstrip()
