"""Session_search tool: search earlier conversations or read parts of them.

With a query it returns one hit for each conversation with the messages around it. With a session it shows part of
that session. With neither it lists the latest sessions. Conversations that may not be seen from here are left out
(session_scope.py). Messages are fenced (fence.py), because other people, web pages and tools may have written them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from hermes.domain.errors import HermesError
from hermes.domain.ids import Seq, SessionId
from hermes.domain.read.views import StoredMessage
from hermes.domain.session.state import Session
from hermes.domain.text.fence import fenced, without_fences
from hermes.domain.turn.tool_call import Effect
from hermes.ports.search import Findings, Found, IndexProgress
from hermes.search.indexed_text import text_in
from hermes.system.random_id import new_marker
from hermes.tools.session_scope import Conversations, Messages, Scope
from hermes.tools.tool import Tool, ToolContext, ToolError, ToolResult, tool

AROUND_HIT = 2  # messages shown before and after each hit
AROUND_PLACE = 10  # the same when reading a session
MAX = 20  # hits or sessions
HIT_CHARS = 400  # shown of a message beside a hit
PLACE_CHARS = 2_000
DAY_S = 86_400.0


def session_search_tool(
    stored: Conversations,
    *,
    clock: Callable[[], float] = time.time,
    marker: Callable[[], str] = new_marker,
) -> Tool:
    @tool("session_search", parallel=True, effect=Effect.PURE)
    async def session_search(
        context: ToolContext,
        *,
        query: Annotated[str, 'search terms: words, "a phrase", -without, this OR that'] = "",
        session: Annotated[str, "session id: search only this conversation, or read it if there is no query"] = "",
        seq: Annotated[
            int | None, "with a session and no query: read the messages around this number; default: the end"
        ] = None,
        role: Annotated[Literal["user", "assistant"] | None, "only messages with this role"] = None,
        days: Annotated[int | None, "only messages of the last N days"] = None,
        limit: Annotated[int, "number of conversations to show, maximum 20"] = 5,
    ) -> ToolResult:
        """Search earlier conversations, also messages that are no longer in your context.

        With a query: the best hit of each conversation and the messages around it. With a session (and seq) but no
        query: that part of the session. With neither: the latest sessions.
        """
        limit = max(1, min(limit, MAX))
        scope = Scope(context.session, context.role, context.by, stored)
        place = SessionId(session) if session else None
        reader = _Reader(stored.messages, marker())
        try:
            if place is not None:
                await scope.require(place)
            if query.strip():
                since = None if days is None else clock() - days * DAY_S
                found = await scope.search(query, limit=limit, session=place, role=role, since=since)
                return ToolResult(text=await reader.hits(found, context.session))
            if place is not None:
                return ToolResult(text=await reader.part(place, None if seq is None else Seq(seq)))
            return ToolResult(text=_latest(await scope.recent(limit), context.session))
        except HermesError as error:
            raise ToolError(str(error)) from error

    return session_search


class _Reader:
    """What is found, as text."""

    def __init__(self, messages: Messages, marker: str) -> None:
        self._messages = messages
        self._marker = marker

    async def hits(self, found: Findings, here: SessionId) -> str:
        note = [_coverage(found.index)] if found.index else []
        if not found.hits:
            return "\n\n".join([*note, "Nothing was found. Fewer or other words may help."])
        parts = [await self._hit(number, hit, here) for number, hit in enumerate(found.hits, 1)]
        return "\n\n".join([*note, *parts, "Read on in one of them with its session and seq, without a query."])

    async def _hit(self, number: int, hit: Found, here: SessionId) -> str:
        head = f"{number}. session {hit.session}{_own(hit.session, here)}, seq {hit.seq}, {_when(hit.at)}, {hit.role}"
        try:
            around = await self._messages(hit.session, hit.seq, AROUND_HIT)
        except HermesError:  # erased or damaged since; the hit itself is still shown
            around = ()
        lines = [f"   {self._line(message, HIT_CHARS)}" for message in around]
        snippet = self._fenced(hit.snippet, len(hit.snippet))
        return "\n".join([head, f"   {snippet}", *(["   around it:", *lines] if lines else [])])

    async def part(self, session: SessionId, seq: Seq | None) -> str:
        shown = await self._messages(session, seq, AROUND_PLACE)
        if not shown:
            return f"Session {session} has no messages there."
        first, last = shown[0].seq, shown[-1].seq
        return "\n".join(
            [
                f"session {session}, seq {first} to {last}:",
                *(self._line(message, PLACE_CHARS) for message in shown),
                f"For earlier messages use seq={first}, for later ones seq={last}.",
            ]
        )

    def _line(self, stored: StoredMessage, max_chars: int) -> str:
        message = json.loads(stored.message)
        text = text_in(message.get("content"))
        role = "note" if stored.note else message.get("role", "")
        shown = self._fenced(text, max_chars) if text.strip() else "(no text)"
        return f"[{stored.seq}] {_when(stored.at)} {role}: {shown}"

    def _fenced(self, text: str, max_chars: int) -> str:
        """Return the text on one line, in this result's fence instead of the stored ones."""
        return fenced(" ".join(without_fences(text).split()), self._marker, max_chars=max_chars)


def _coverage(index: IndexProgress) -> str:
    return (
        f"The search index is still being built: it covers the oldest {index.percent} % of all messages. "
        "Newer messages are not found yet. Search again later."
    )


def _latest(sessions: Sequence[Session], here: SessionId) -> str:
    lines = [
        f"session {each.id}{_own(each.id, here)}, {each.platform}, last active {_when(each.active_at)}, "
        f"{each.messages} messages, {each.phase.value}"
        for each in sessions
    ]
    return "\n".join(lines) or "There are no sessions yet."


def _own(session: SessionId, here: SessionId) -> str:
    return " (this one)" if session == here else ""


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
