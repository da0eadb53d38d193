"""Conversion of Slack's notation (`<@U1>`, `<https://…|label>`, `&amp;`) to plain text. Pure."""

from __future__ import annotations

import html
import re

from hermes.adapters.chat.utf16 import sound

_TOKEN = re.compile(r"<([^<>]+)>")


def mentions(text: str, user: str) -> bool:
    return bool(user) and re.search(rf"<@{re.escape(user)}(\|[^>]*)?>", text) is not None


def mentioned(text: str) -> list[str]:
    """Return the ids of people that are mentioned without a name."""
    return re.findall(r"<@([UW][A-Za-z0-9]+)>", text)


def readable(text: str, user: str, name: str) -> str:
    """Return the text as a person sees it, without the bot's name at the start."""
    text = re.sub(rf"^\s*<@{re.escape(user)}(\|[^>]*)?>[\s,:]*", "", text)
    text = re.sub(rf"<@{re.escape(user)}(\|[^>]*)?>", f"@{name}", text)
    return sound(html.unescape(_TOKEN.sub(_shown, text)))


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
