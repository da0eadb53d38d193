"""Greeting of a resumed session: its last messages, and what its state means for the next message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.cli.output import one_line, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

_STATES = {
    "idle": "Session {id} resumed.",
    "running": ("Session {id} is still answering; your next message is queued. `hermes show {id}` shows the answer."),
    "waiting": "Session {id} waits for you: {reason}.",
    "resume_pending": "Session {id} was interrupted ({reason}) and resumes automatically; your next message is "
    "queued.",
    "suspended": (
        "Session {id} is suspended ({reason}): the next message starts a new session; "
        "`hermes resume {id}` resumes it."
    ),
    "ended": "Session {id} has ended ({reason}): the next message starts a new session.",
}
_ANY_STATE = "Session {id} is {phase} ({reason}); your next message is queued."
_SPEAKERS = {"user": "you", "assistant": "hermes"}


def describe(view: Mapping[str, Any], asked_for: str) -> list[str]:
    """Return the lines of the greeting."""
    from hermes.tui.view_model import content_text

    session = view["session"]
    lines = []
    for message in view["transcript"]:
        role, content = str(message["role"]), content_text(message["content"])
        if role in _SPEAKERS and (content or role == "user"):  # tool results are left to `hermes show`
            speaker = "note" if message.get("note") else _SPEAKERS[role]
            lines.append(shortened(f"{speaker}: {content}"))
    if session["id"] != asked_for:
        lines.append(one_line(f"{asked_for} continues as {session['id']}."))
    return [*lines, one_line(_STATES.get(session["phase"], _ANY_STATE).format(**session))]
