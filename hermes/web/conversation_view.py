"""Stored messages as a page shows them: each tool call with its result. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hermes.domain.media.reference import named_by
from hermes.domain.read.views import StoredMessage

MAX_RESULT_CHARS: Final = 20_000
_BRIEF_CHARS: Final = 120


@dataclass(slots=True, kw_only=True)
class CallView:
    id: str
    name: str
    arguments: str
    brief: str  # beginning of the arguments, on one line
    result: str | None = None  # None: not on this page
    cut: int = 0  # characters of the result that are left out
    answered: str = ""


@dataclass(slots=True, kw_only=True)
class MessageView:
    seq: int
    at: float
    turn: str
    role: str
    text: str
    by: str = ""
    is_note: bool = False
    pictures: tuple[str, ...] = ()  # names in the media store
    calls: list[CallView] = field(default_factory=list)


def conversation(messages: Sequence[StoredMessage]) -> list[MessageView]:
    """Return the messages of a page. A result without its call, which an earlier page has, stands by itself."""
    shown: list[MessageView] = []
    calls: dict[str, CallView] = {}
    for stored in messages:
        message = json.loads(stored.message)
        if message.get("role") == "tool":
            call = calls.get(str(message.get("tool_call_id")))
            if call is None:
                call = CallView(id=str(message.get("tool_call_id")), name="tool", arguments="", brief="")
                view = _view(stored, {"role": "tool"})
                view.calls.append(call)
                shown.append(view)
            text, _ = _content(message.get("content"))
            call.result, call.cut = text[:MAX_RESULT_CHARS], max(0, len(text) - MAX_RESULT_CHARS)
            call.answered = stored.answered
            continue
        view = _view(stored, message)
        calls |= {call.id: call for call in view.calls}
        shown.append(view)
    return shown


def _view(stored: StoredMessage, message: dict[str, Any]) -> MessageView:
    text, pictures = _content(message.get("content"))
    return MessageView(
        seq=stored.seq,
        at=stored.at,
        turn=stored.turn,
        role="note" if stored.note else str(message.get("role", "")),
        text=text,
        by=stored.by,
        is_note=stored.note,
        pictures=pictures,
        calls=[_call(each) for each in message.get("tool_calls") or ()],
    )


def _content(content: Any) -> tuple[str, tuple[str, ...]]:
    """Return the text of a message and the names of its pictures."""
    if isinstance(content, str):
        return content, ()
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    texts = [str(part.get("text", "")) for part in parts if part.get("type") == "text"]
    return "\n\n".join(filter(None, texts)), tuple(filter(None, map(named_by, parts)))


def _call(call: dict[str, Any]) -> CallView:
    function = call.get("function") or {}
    arguments, brief = _arguments(str(function.get("arguments") or ""))
    return CallView(id=str(call.get("id")), name=str(function.get("name")), arguments=arguments, brief=brief)


def _arguments(raw: str) -> tuple[str, str]:
    """Return the arguments for people, and their beginning. What cannot be read as JSON is shown as it is."""
    try:
        given = json.loads(raw)
        arguments = given if isinstance(given, str) else json.dumps(given, indent=2, ensure_ascii=False)
        first = str(next(iter(given.values()), "") if isinstance(given, dict) else given)
    except (ValueError, RecursionError):  # RecursionError: nested too deeply
        arguments = first = raw
    return arguments, " ".join(first.split())[:_BRIEF_CHARS]
