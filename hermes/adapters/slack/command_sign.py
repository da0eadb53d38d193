"""How commands are written on Slack, which keeps every slash for itself: `!new`, or `/hermes new` outside of threads.

What people write becomes `/new`, as everywhere else; what Hermes itself says about its commands goes out as `!new`.
Words of others stay as they are: the model's, a question's, which may show a command line, and what a process said.
"""

from __future__ import annotations

import html
import re
from functools import cache

from hermes.domain.types import OutboxKind, OutboxMessage
from hermes.services.commands.registry import COMMANDS, Parsed, SlashCommand, Unknown, is_nearly, parse

PREFIX = "hermes-"  # of native commands whose names Slack keeps for itself
_RESERVED = frozenset(
    {
        "active", "apps", "archive", "away", "call", "canvas", "caption", "collapse", "dm", "dnd", "expand", "feed",
        "feedback", "help", "huddle", "invite", "join", "kick", "leave", "list", "me", "msg", "mute", "open", "part",
        "prefs", "remind", "remove", "rename", "search", "share", "shortcuts", "shrug", "star", "status", "topic",
        "who", "workflow",
    }
)  # fmt: skip
_OF_OTHERS = ("send:", "pressed:", "notice:process:", "home:process:")  # how ids of notices with their words begin


def native(command: SlashCommand) -> str:
    """What a command is called among Slack's own."""
    return f"/{PREFIX if command.name in _RESERVED else ''}{command.name}"


def with_slash(text: str) -> str:
    """`!new` as `/new`, where there is such a command or nearly: else the mark is a mark."""
    if not text.startswith("!"):
        return text
    command = f"/{text[1:]}"
    match parse(command):
        case Parsed():
            return command
        case Unknown(word=word) if is_nearly(word):
            return command  # mistyped, and answered with a suggestion
    return text


def slash_text(command: str, text: str) -> str:
    """What was typed after `/hermes`: a command by its name, or else something for the agent."""
    text = html.unescape(text.strip())
    word = command.lstrip("/")
    if word != "hermes":
        return f"/{word.removeprefix(PREFIX)} {text}".strip()
    if not text:
        return "/help"
    typed = f"/{text.removeprefix('/')}"
    return typed if text.startswith("/") or isinstance(parse(typed), Parsed) else with_slash(text)


def with_mark(outgoing: OutboxMessage, text: str) -> str:
    """`/new` as `!new`, in what Hermes itself says. As long as before, so that its parts stay the same."""
    if outgoing.kind is not OutboxKind.NOTICE or outgoing.id.startswith(_OF_OTHERS):
        return text
    return _written().sub(r"!\1", text)


@cache
def _written() -> re.Pattern[str]:
    """A command as it stands in a sentence, and no path."""
    words = "|".join(word for command in COMMANDS for word in command.words)
    return re.compile(rf"(?<![^\s(])/((?:{words})\b)(?![/@-]|\.\w)")
