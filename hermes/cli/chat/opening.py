"""What somebody is told who comes back to a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.cli.output import one_line, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

_STATES = {
    "idle": "Session {id} resumed.",
    "running": (
        "Session {id} is still answering: your next message waits for that; `hermes show {id}` will have the answer."
    ),
    "waiting": "Session {id} waits for you: {reason}.",
    "resume_pending": "Session {id} was interrupted ({reason}) and goes on by itself: your next message waits.",
    "suspended": (
        "Session {id} is suspended ({reason}): the next message starts a fresh session; "
        "`hermes resume {id}` brings it back."
    ),
    "ended": "Session {id} has ended ({reason}): the next message starts a fresh session.",
}
_ANY_STATE = "Session {id} is {phase} ({reason}); your next message waits."
_SPEAKERS = {"user": "you", "assistant": "hermes"}


def describe(view: Mapping[str, Any], asked_for: str) -> list[str]:
    """What to tell somebody who comes back: the end of the conversation so far, and what their session can do."""
    session = view["session"]
    lines = []
    for message in view["transcript"]:
        role, content = str(message["role"]), str(message["content"] or "")
        if role in _SPEAKERS and (content or role == "user"):  # what tools returned is for `hermes show`
            speaker = "note" if message.get("note") else _SPEAKERS[role]
            lines.append(shortened(f"{speaker}: {content}"))
    if session["id"] != asked_for:
        lines.append(one_line(f"{asked_for} went on as {session['id']}."))
    return [*lines, one_line(_STATES.get(session["phase"], _ANY_STATE).format(**session))]
