"""One session, as a person on a terminal meets it: what state it is in, what they say, what comes back."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hermes.cli.client import AdminError, LostError, session_path
from hermes.cli.output import one_line, shortened
from hermes.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hermes.cli.client import AdminClient

_STATES = {
    "idle": "Session {id} resumed.",
    "running": (
        "Session {id} is still answering: your next message waits for that; `hermes show {id}` will have the answer."
    ),
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
        lines.append(shortened(f"{_SPEAKERS.get(role, role)}: {content}"))
    if session["id"] != asked_for:
        lines.append(one_line(f"{asked_for} went on as {session['id']}."))
    return [*lines, one_line(_STATES.get(session["phase"], _ANY_STATE).format(**session))]


class Conversation:
    def __init__(self, client: AdminClient, session: str) -> None:
        self.session = session  # follows the session when it goes on under another id
        self.last: dict[str, Any] = {}  # what the last answer said about itself
        self._client = client

    def ask(self, text: str) -> Iterator[str]:
        """The answer, piece by piece."""
        if "\0" in text:
            raise HermesError("the text holds a NUL character")
        body = {
            "model": "hermes",
            "messages": [{"role": "user", "content": text}],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        self.last = {"model": None, "finish_reason": None, "usage": None, "notice": None}
        data = ""
        try:
            for _, data in self._client.stream_sse(
                "POST", "/v1/chat/completions", body, {"X-Hermes-Session-Id": self.session}
            ):
                if data != "[DONE]":
                    yield self._piece(json.loads(data))
        except LostError as error:
            raise self._lost(stored=bool(data)) from error
        if data != "[DONE]":
            raise HermesError("the answer was cut off")

    def stop(self) -> None:
        with suppress(AdminError):  # it was not running yet, or not any more
            self._client.post(f"{session_path(self.session)}/stop", {"reason": "stopped by Ctrl-C"})

    def _piece(self, chunk: Mapping[str, Any]) -> str:
        if "error" in chunk:
            raise HermesError(chunk["error"]["message"])
        ours = chunk.get("hermes", {})
        self.session = ours.get("session_id", self.session)
        choice: Mapping[str, Any] = next(iter(chunk.get("choices", [])), {})
        news = {
            "model": chunk.get("model"),
            "finish_reason": choice.get("finish_reason"),
            "usage": chunk.get("usage"),
            "notice": ours.get("notice"),  # what its person should know: why this is a fresh session, say
        }
        self.last |= {name: value for name, value in news.items() if value}
        return choice.get("delta", {}).get("content") or ""

    def _lost(self, *, stored: bool) -> LostError:
        """The first event says that the message is on disk."""
        if not stored:
            return LostError(
                "the daemon went away before it confirmed the message, which may not be stored; "
                f"look with: hermes show {self.session}"
            )
        return LostError(
            "the daemon went away in the middle of the answer. The message is stored and the answer will be "
            f"finished when a daemon runs again; go on with: hermes chat -r {self.session}"
        )
