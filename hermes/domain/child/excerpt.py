"""Excerpt of a conversation for a child session: its last messages, as text with a limited length. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from hermes.domain.history.message_chain import text_and_calls
from hermes.domain.read.views import StoredMessage
from hermes.domain.text.fence import without_fences

MAX_CHARS: Final = 24_000
MAX_PAGE: Final = 300  # messages to look at
_TEXT: Final = 2_000  # characters of a message
_DETAIL: Final = 300  # characters of a call's arguments, or of its result


def excerpt(messages: Sequence[StoredMessage], max_chars: int = MAX_CHARS) -> str:
    """Return the last messages that fit, oldest first, without the notes of the system."""
    lines: list[str] = []
    left = max_chars
    for message in reversed(messages):
        shown = "" if message.note else _shown(message)
        if len(shown) + 1 > left:
            break
        if shown:
            lines.append(shown)
            left -= len(shown) + 1
    return "\n".join(reversed(lines))


def _shown(stored: StoredMessage) -> str:
    role = json.loads(stored.message).get("role", "")
    text, calls = text_and_calls(stored.message)
    most = _DETAIL if role == "tool" else _TEXT
    lines = [f"[{role}] {_cut(without_fences(text).strip(), most)}"] if text.strip() else []
    for call in calls:
        function = call.get("function") or {}
        lines.append(f"[call] {function.get('name', '')} {_cut(str(function.get('arguments', '')), _DETAIL)}")
    return "\n".join(lines)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
