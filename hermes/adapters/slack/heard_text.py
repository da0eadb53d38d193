"""What a person wrote, without Slack's own notation: `<@U1>`, `<https://…|label>`, `&amp;` and their kind. Pure."""

from __future__ import annotations

import html
import re

from hermes.adapters.chat.utf16 import sound
from hermes.commands.registry import Parsed, parse

_TOKEN = re.compile(r"<([^<>]+)>")


def mentions(text: str, user: str) -> bool:
    return bool(user) and re.search(rf"<@{re.escape(user)}(\|[^>]*)?>", text) is not None


def mentioned(text: str) -> list[str]:
    """The ids of people that stand in it without a name."""
    return re.findall(r"<@([UW][A-Za-z0-9]+)>", text)


def readable(text: str, user: str, name: str) -> str:
    """As a person sees it. The bot's own name in front is dropped: everything that arrives is meant for it."""
    text = re.sub(rf"^\s*<@{re.escape(user)}(\|[^>]*)?>[\s,:]*", "", text)
    text = re.sub(rf"<@{re.escape(user)}(\|[^>]*)?>", f"@{name}", text)
    return sound(html.unescape(_TOKEN.sub(_shown, text)))


def with_slash(text: str) -> str:
    """`!new` as `/new`, where there is such a command: Slack lets nobody type a slash in a thread."""
    if not text.startswith("!"):
        return text
    command = f"/{text[1:]}"
    return command if isinstance(parse(command), Parsed) else text


def slash_text(command: str, text: str) -> str:
    """What was typed after `/hermes`: a command by its name, or else something for the agent."""
    text = html.unescape(text.strip())
    if command.lstrip("/") != "hermes":
        return f"{command} {text}".strip()
    if not text:
        return "/help"
    typed = f"/{text.removeprefix('/')}"
    return typed if text.startswith("/") or isinstance(parse(typed), Parsed) else text


def _shown(found: re.Match[str]) -> str:
    target, _, label = found[1].partition("|")
    match target[0]:
        case "@":
            return f"@{label or target[1:]}"
        case "#":
            return f"#{label or target[1:]}"
        case "!":
            return f"@{(label or target[1:].partition('^')[0]).removeprefix('@')}"
    address = target.removeprefix("mailto:").removeprefix("tel:")
    return f"{label} ({target})" if label and label not in {target, address} else address
