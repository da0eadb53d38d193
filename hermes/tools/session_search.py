"""Session_search tool: search earlier conversations, read parts of them, or list them.

Discover returns one hit for each conversation, with a summary by the auxiliary model or the messages around it.
Scroll shows part of a session. Browse lists the latest sessions. Conversations that may not be seen from here are
left out (session_scope.py). Messages are fenced (fence.py), because other people, web pages and tools may have
written them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal, Protocol

from hermes.domain.errors import HermesError
from hermes.domain.ids import Seq, SessionId
from hermes.domain.read.log_line import parse_since
from hermes.domain.read.views import StoredMessage
from hermes.domain.session.state import Session
from hermes.domain.text.fence import fenced, without_fences
from hermes.domain.turn.tool_call import Effect
from hermes.ports.search import Findings, Found, IndexProgress, SearchFilter
from hermes.search.indexed_text import text_in
from hermes.system.random_id import new_marker
from hermes.tools.session_scope import Conversations, Messages, Scope
from hermes.tools.tool import Tool, ToolContext, ToolError, ToolResult, tool

AROUND_HIT = 2  # messages shown before and after each hit
AROUND_PLACE = 10  # the same when reading a session, and for a summary
MAX = 20  # hits or sessions
HIT_CHARS = 400  # shown of a message beside a hit
PLACE_CHARS = 2_000
SUMMARY_CHARS = 24_000  # of messages that one summary is made of
DAY_S = 86_400.0


class Summarise(Protocol):
    async def __call__(self, query: str, excerpts: Sequence[str], context: ToolContext, /) -> Sequence[str] | None:
        """Return a summary of each excerpt; None if there is no model for it, or it failed."""


async def no_summaries(_query: str, _excerpts: Sequence[str], _context: ToolContext) -> None:
    """Make no summaries."""


def session_search_tool(
    stored: Conversations,
    *,
    clock: Callable[[], float] = time.time,
    marker: Callable[[], str] = new_marker,
    summarise: Summarise = no_summaries,
) -> Tool:
    @tool("session_search", parallel=True, effect=Effect.PURE)
    async def session_search(
        context: ToolContext,
        *,
        query: Annotated[str, 'search terms: words, "a phrase", -without, this OR that'] = "",
        mode: Annotated[
            Literal["discover", "scroll", "browse"] | None,
            "discover: search; scroll: read a session; browse: list the latest sessions; default: what the other "
            "arguments suggest",
        ] = None,
        session: Annotated[str, "session id: search only this conversation, or read it if there is no query"] = "",
        seq: Annotated[
            int | None, "with a session and no query: read the messages around this number; default: the end"
        ] = None,
        role: Annotated[Literal["user", "assistant"] | None, "only messages with this role"] = None,
        person: Annotated[str, "only the conversation of this person: owner, or PLATFORM:USER"] = "",
        platform: Annotated[str, "only messages of this platform, such as telegram or cli"] = "",
        days: Annotated[int | None, "only messages of the last N days"] = None,
        before: Annotated[str, "only messages before this time: 12h or 7d ago, or 2026-01-31"] = "",
        limit: Annotated[int, "number of conversations to show, maximum 20"] = 5,
    ) -> ToolResult:
        """Search earlier conversations, also messages that are no longer in your context.

        With a query: the best hit of each conversation and what was said around it. With a session (and seq) but no
        query: that part of the session. With neither: the latest sessions.
        """
        limit = max(1, min(limit, MAX))
        scope = Scope(context.session, context.role, context.by, stored)
        place = SessionId(session) if session else None
        reader = _Reader(stored.messages, marker())
        only = SearchFilter(
            session=place,
            role=role,
            since=None if days is None else clock() - days * DAY_S,
            until=_time(before, clock()),
            platform=platform,
            person=person,
        )
        _check(mode, query=query, session=session)
        try:
            if place is not None:
                await scope.require(place)
            if query.strip():
                found = await scope.search(query, limit=limit, only=only)
                summaries = await _summaries(reader, found, query, context, summarise)
                return ToolResult(text=await reader.hits(found, context.session, summaries))
            if place is not None:
                return ToolResult(text=await reader.part(place, None if seq is None else Seq(seq)))
            return ToolResult(text=_latest(await scope.recent(limit, only=only), context.session))
        except HermesError as error:
            raise ToolError(str(error)) from error

    return session_search


def _check(mode: str | None, *, query: str, session: str) -> None:
    """Refuse a mode that the other arguments contradict."""
    if mode == "discover" and not query.strip():
        raise ToolError("discover needs a query. browse lists the latest sessions.")
    if mode == "scroll" and (not session or query.strip()):
        raise ToolError("scroll needs a session and no query.")
    if mode == "browse" and (session or query.strip()):
        raise ToolError("browse takes no query and no session.")


def _time(text: str, now: float) -> float | None:
    try:
        return parse_since(text, now) if text.strip() else None
    except ValueError as error:
        raise ToolError(f"before: {error}") from None


async def _summaries(
    reader: _Reader, found: Findings, query: str, context: ToolContext, summarise: Summarise
) -> Sequence[str] | None:
    if not found.hits or summarise is no_summaries:
        return None
    each = SUMMARY_CHARS // len(found.hits)
    return await summarise(query, [await reader.excerpt(hit, each) for hit in found.hits], context)


class _Reader:
    """What is found, as text."""

    def __init__(self, messages: Messages, marker: str) -> None:
        self._messages = messages
        self._marker = marker

    async def hits(self, found: Findings, here: SessionId, summaries: Sequence[str] | None) -> str:
        note = [_coverage(found.index)] if found.index else []
        if not found.hits:
            return "\n\n".join([*note, "Nothing was found. Fewer or other words may help."])
        parts = []
        for number, hit in enumerate(found.hits):
            summary = None if summaries is None else summaries[number]
            parts.append(await self._hit(number + 1, hit, here, summary))
        return "\n\n".join([*note, *parts, "Read on in one of them with its session and seq, without a query."])

    async def _hit(self, number: int, hit: Found, here: SessionId, summary: str | None) -> str:
        head = f"{number}. session {hit.session}{_own(hit.session, here)}, seq {hit.seq}, {_when(hit.at)}, {hit.role}"
        snippet = self._fenced(hit.snippet, len(hit.snippet))
        if summary:
            said = f"   summary by a model, which may be wrong: {self._fenced(summary, PLACE_CHARS)}"
            return "\n".join([head, f"   {snippet}", said])
        lines = [f"   {self._line(message, HIT_CHARS)}" for message in await self._around(hit, AROUND_HIT)]
        return "\n".join([head, f"   {snippet}", *(["   around it:", *lines] if lines else [])])

    async def excerpt(self, hit: Found, max_chars: int) -> str:
        """Return what was said around a hit, without fences."""
        around = await self._around(hit, AROUND_PLACE)
        each = max_chars // max(1, len(around))
        shown = [_spoken(message) for message in around]
        return "\n".join(f"{role}: {without_fences(text)[:each]}" for role, text in shown if text)

    async def _around(self, hit: Found, n: int) -> Sequence[StoredMessage]:
        try:
            return await self._messages(hit.session, hit.seq, n)
        except HermesError:  # erased or damaged since; the hit itself is still shown
            return ()

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
        role, text = _spoken(stored)
        shown = self._fenced(text, max_chars) if text else "(no text)"
        return f"[{stored.seq}] {_when(stored.at)} {role}: {shown}"

    def _fenced(self, text: str, max_chars: int) -> str:
        """Return the text on one line, in this result's fence instead of the stored ones."""
        return fenced(" ".join(without_fences(text).split()), self._marker, max_chars=max_chars)


def _spoken(stored: StoredMessage) -> tuple[str, str]:
    """Return the role and text of a message."""
    message = json.loads(stored.message)
    return "note" if stored.note else message.get("role", ""), text_in(message.get("content")).strip()


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
