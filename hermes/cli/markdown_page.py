"""Markdown page of a conversation, for people. Pure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from hermes.cli.output import moment, one_line, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes.domain.read.views import StoredMessage
    from hermes.domain.session.state import Session

_WHO = {"user": "Person", "assistant": "Agent", "system": "Note", "tool": "Result"}


def page(sessions: Sequence[tuple[Session, Sequence[StoredMessage]]]) -> str:
    """Return the page of a conversation from its sessions, the oldest first."""
    last = sessions[-1][0]
    lines = [f"# {_title(last)}", "", *_facts(last)]
    for session, messages in sessions:
        if len(sessions) > 1:
            lines += ["", f"## Session {session.id}", "", f"{session.phase.value}: {one_line(session.reason)}"]
        for message in messages:
            lines += ["", *_message(message)]
    return "\n".join(lines) + "\n"


def _title(session: Session) -> str:
    return one_line(session.preferences.title) or f"Session {session.id}"


def _facts(session: Session) -> Iterator[str]:
    usage = session.usage
    yield f"- session: `{session.id}`"
    yield f"- state: {session.phase.value} ({one_line(session.reason)})"
    yield f"- begun: {moment(session.created_at)}"
    yield f"- last message: {moment(session.active_at)}"
    yield f"- turns: {session.turns}; tokens: {usage.prompt_tokens} in, {usage.completion_tokens} out"


def _message(stored: StoredMessage) -> Iterator[str]:
    message = json.loads(stored.message)
    role = str(message.get("role"))
    yield f"### {'Note' if stored.note else _WHO.get(role, role)}, {moment(stored.at)}"
    content = message.get("content")
    if content:
        yield ""
        yield _fenced(_text(content)) if role == "tool" else printable(_text(content)).strip("\n")
    for call in message.get("tool_calls") or ():
        function = call.get("function", {})
        yield ""
        yield f"Calls `{one_line(str(function.get('name')))}`:"
        yield ""
        yield _fenced(str(function.get("arguments")), "json")


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=2)


def _fenced(text: str, language: str = "") -> str:
    """Return the text in a fence that is longer than any fence inside it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{printable(text).rstrip()}\n{fence}"
