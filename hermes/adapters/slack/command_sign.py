"""Command syntax on Slack, which reserves the slash: `!new`, or `/hermes new` outside of threads.

Inbound `!new` becomes `/new`. In Hermes' own outbound texts `/new` becomes `!new`; texts of the model, of questions
and of processes stay unchanged.
"""

from __future__ import annotations

import html
import re
from functools import cache

from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.services.commands.registry import COMMANDS, Parsed, SlashCommand, Unknown, is_nearly, parse

PREFIX = "hermes-"  # of native commands whose names Slack reserves
_RESERVED = frozenset(
    {
        "active", "apps", "archive", "away", "call", "canvas", "caption", "collapse", "dm", "dnd", "expand", "feed",
        "feedback", "help", "huddle", "invite", "join", "kick", "leave", "list", "me", "msg", "mute", "open", "part",
        "prefs", "remind", "remove", "rename", "search", "share", "shortcuts", "shrug", "star", "status", "topic",
        "who", "workflow",
    }
)  # fmt: skip
_OF_OTHERS = ("send:", "pressed:", "notice:process:", "home:process:")  # id prefixes of notices with foreign text


def native(command: SlashCommand) -> str:
    """Return the name of the native Slack command."""
    return f"/{PREFIX if command.name in _RESERVED else ''}{command.name}"


def with_slash(text: str) -> str:
    """Convert `!new` to `/new` if a command has this or a similar name."""
    if not text.startswith("!"):
        return text
    command = f"/{text[1:]}"
    match parse(command):
        case Parsed():
            return command
        case Unknown(word=word) if is_nearly(word):
            return command  # mistyped: answered with a suggestion
    return text


def slash_text(command: str, text: str) -> str:
    """Return the command or message typed after `/hermes`."""
    text = html.unescape(text.strip())
    word = command.lstrip("/")
    if word != "hermes":
        return f"/{word.removeprefix(PREFIX)} {text}".strip()
    if not text:
        return "/help"
    typed = f"/{text.removeprefix('/')}"
    return typed if text.startswith("/") or isinstance(parse(typed), Parsed) else with_slash(text)


def with_mark(outgoing: OutboxMessage, text: str) -> str:
    """Convert `/new` to `!new` in Hermes' own texts. The length stays the same, so parts do too."""
    if outgoing.kind is not OutboxKind.NOTICE or outgoing.id.startswith(_OF_OTHERS):
        return text
    return _written().sub(r"!\1", text)


@cache
def _written() -> re.Pattern[str]:
    """Match a command in a sentence, but not in a path."""
    words = "|".join(word for command in COMMANDS for word in command.words)
    return re.compile(rf"(?<![^\s(])/((?:{words})\b)(?![/@-]|\.\w)")
