"""The tool `session_search`: the agent's memory of all conversations, found by words or looked through by place.

Three ways to use it: with a query it finds, one place for each conversation with what was said around it; with a
session it shows a part of that one, to be scrolled through; with neither it lists the latest sessions. What is not
for the conversation at hand to know does not come up (session_scope.py). What was said is fenced (fence.py): other
people, web pages and tools may have written it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Protocol

from hermes.domain.errors import HermesError
from hermes.domain.fence import fenced, new_marker, without_fences
from hermes.domain.read.views import StoredMessage
from hermes.domain.types import Effect, Seq, Session, SessionId
from hermes.ports.search import Findings, Found, IndexProgress
from hermes.tools.session_scope import Heads, Recent, Scope, Search
from hermes.tools.tool import Tool, ToolContext, ToolError, ToolResult, tool

AROUND_HIT = 2  # messages shown before and after each place that was found
AROUND_PLACE = 10  # the same when scrolling
MAX = 20  # hits or sessions
HIT_CHARS = 400  # shown of a message beside a hit
PLACE_CHARS = 2_000
DAY_S = 86_400.0


class Messages(Protocol):
    def __call__(self, session: SessionId, seq: Seq | None, n: int) -> Awaitable[Sequence[StoredMessage]]:
        """Up to n before that place, those at it, up to n after, oldest first; `seq=None` is the end.

        Raises UnknownSessionError.
        """


def session_search_tool(
    *,
    search: Search,
    messages: Messages,
    recent: Recent,
    heads: Heads,
    clock: Callable[[], float] = time.time,
    marker: Callable[[], str] = new_marker,
) -> Tool:
    @tool("session_search", parallel=True, effect=Effect.PURE)
    async def session_search(
        context: ToolContext,
        *,
        query: Annotated[str, 'what to look for: words, "a phrase", -without, this OR that'] = "",
        session: Annotated[str, "a session's id: search only its conversation, or without a query read it"] = "",
        seq: Annotated[
            int | None, "with a session and no query: the place to read around; without it the end"
        ] = None,
        role: Annotated[Literal["user", "assistant"] | None, "who said it"] = None,
        days: Annotated[int | None, "only what was said in the last so many days"] = None,
        limit: Annotated[int, "how many conversations to show, at most 20"] = 5,
    ) -> ToolResult:
        """Look something up in earlier conversations, also those that are no longer in your context.

        With a query: the best place in each conversation, with the messages around it. With a session (and seq) but
        no query: that part of the conversation. With neither: the latest sessions.
        """
        limit = max(1, min(limit, MAX))
        scope = Scope(context.session, context.role, context.by, search=search, recent=recent, heads=heads)
        place = SessionId(session) if session else None
        reader = _Reader(messages, marker())
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
        except HermesError:  # erased or damaged meanwhile; what was found is still worth showing
            around = ()
        lines = [f"   {self._line(message, HIT_CHARS)}" for message in around]
        snippet = self._fenced(hit.snippet, len(hit.snippet))
        return "\n".join([head, f"   {snippet}", *(["   around it:", *lines] if lines else [])])

    async def part(self, session: SessionId, seq: Seq | None) -> str:
        shown = await self._messages(session, seq, AROUND_PLACE)
        if not shown:
            return f"There are no messages at that place of session {session}."
        first, last = shown[0].seq, shown[-1].seq
        return "\n".join(
            [
                f"session {session}, seq {first} to {last}:",
                *(self._line(message, PLACE_CHARS) for message in shown),
                f"Earlier ones: seq={first}. Later ones: seq={last}.",
            ]
        )

    def _line(self, stored: StoredMessage, max_chars: int) -> str:
        message = json.loads(stored.message)
        text = _text(message.get("content"))
        role = "note" if stored.note else message.get("role", "")
        shown = self._fenced(text, max_chars) if text.strip() else "(no text)"
        return f"[{stored.seq}] {_when(stored.at)} {role}: {shown}"

    def _fenced(self, text: str, max_chars: int) -> str:
        """On one line, in this result's fence instead of those that it was stored with."""
        return fenced(" ".join(without_fences(text).split()), self._marker, max_chars=max_chars)


def _coverage(index: IndexProgress) -> str:
    return (
        f"The search index is still being built: it covers the oldest {index.percent} % of what was said. "
        "Newer messages are not found yet; search again later."
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


def _text(content: Any) -> str:
    """A message's content is a text or a list of parts, of which those with text count."""
    if isinstance(content, list):
        return "\n".join(filter(None, map(_text, content)))
    if isinstance(content, dict):
        content = content.get("text")
    return content if isinstance(content, str) else ""
