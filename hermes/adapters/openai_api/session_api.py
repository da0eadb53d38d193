"""Stored sessions: list, details, transcript, erasure.

Any id of a lineage means its live end, unless `exact` asks for this session.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Annotated, TypeAlias

from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from hermes.adapters.http import parameter, presentation
from hermes.adapters.http.parameter import Flag, is_set, query
from hermes.adapters.http.problem import refusal
from hermes.adapters.http.schema import Fields, SessionIdText
from hermes.adapters.http.service import Service, json_response, remember_session
from hermes.adapters.openai_api.sessions import session_list
from hermes.adapters.openai_api.turns import pending
from hermes.domain.errors import BadInputError
from hermes.domain.ids import Seq, SessionId
from hermes.domain.read.reader import Activity
from hermes.domain.read.views import StoredMessage
from hermes.domain.session.state import Phase, Session
from hermes.ports.children import ChildView

MAX_LISTED = 200
MAX_MESSAGES = 1_000


PREVIEWED = 5  # messages read for a preview
PREVIEW_CHARACTERS = 120
Time: TypeAlias = Annotated[float, Meta(ge=0, le=2**40, description="seconds since the epoch")]


class SessionListQuery(Fields):
    limit: Annotated[int, Meta(ge=1, le=MAX_LISTED)] = 50
    after: SessionIdText | UnsetType = UNSET
    cursor: str | UnsetType = UNSET
    platform: str = ""
    phase: Phase | UnsetType = UNSET
    title: str = ""
    person: str = ""
    since: Time | UnsetType = UNSET
    until: Time | UnsetType = UNSET
    total: Flag = "0"
    preview: Flag = "0"
    children: Flag = "0"


class SessionQuery(Fields):
    exact: Flag = "0"


class MessagesQuery(Fields):
    limit: Annotated[int, Meta(ge=1, le=MAX_MESSAGES)] = 100
    after: Annotated[int, Meta(ge=-1, le=2**63 - 1)] | UnsetType = UNSET
    before: Annotated[int, Meta(ge=0, le=2**63 - 1)] | UnsetType = UNSET
    exact: Flag = "0"


class SessionApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/sessions", self.recent),
            web.get("/api/sessions/{id}", self.one),
            web.delete("/api/sessions/{id}", self.erase),
            web.get("/api/sessions/{id}/messages", self.messages),
            web.get("/api/sessions/{id}/processes", self.processes),
            web.get("/api/sessions/{id}/agents", self.agents),
            web.get("/api/sessions/{id}/context", self.context),
        ]

    async def recent(self, request: web.Request) -> web.Response:
        """List sessions, last active first. A page may be short although `next_cursor` is set."""
        asked, sessions = query(request, SessionListQuery), self._service.sessions
        wanted = _filter_in(asked)
        page = await session_list.read_page(sessions, wanted, after=_start_in(asked), limit=asked.limit)
        body: presentation.JsonObject = {
            "sessions": [presentation.session(session) for session in page.sessions],
            "has_more": page.after is not None,
            "next_cursor": None if page.after is None else session_list.cursor_of(page.after),
        }
        if is_set(asked.total):
            body["total"] = await session_list.count(sessions, wanted)
        if is_set(asked.preview):
            body["previews"] = {session.id: await self._preview(session) for session in page.sessions}
        return json_response(body)

    async def _preview(self, session: Session) -> presentation.JsonObject:
        """Return the beginning of the first message of a person, and of the last message."""
        read = self._service.sessions.messages
        first = await read(session.id, Seq(-1), PREVIEWED, exact=True)
        last = await read(session.id, None, PREVIEWED, exact=True)
        asked = (text for each in first if not each.note and (text := _text_of(each, ("user",))))
        said = (text for each in reversed(last) if (text := _text_of(each, ("user", "assistant"))))
        return {"first": next(asked, ""), "last": next(said, "")}

    async def one(self, request: web.Request) -> web.Response:
        asked_for = query(request, SessionQuery)
        view = await self._service.view(parameter.session_in_path(request), exact=is_set(asked_for.exact))
        remember_session(request, view.session.id)
        asked = pending.asked_in(view.session)
        return json_response({**presentation.view(view), "pending": pending.field(asked) if asked else None})

    async def erase(self, request: web.Request) -> web.Response:
        session = remember_session(request, parameter.session_in_path(request))
        await self._service.sessions.erase(session)
        return json_response({"id": session, "deleted": True})

    async def processes(self, request: web.Request) -> web.Response:
        view = await self._service.sessions.view(parameter.session_in_path(request))
        session = remember_session(request, view.session.id)
        listed = await self._service.processes.listed(session)
        return json_response({"session_id": session, "processes": [self._service.shown_process(x) for x in listed]})

    async def context(self, request: web.Request) -> web.Response:
        """Return what fills the context window, by part."""
        view = await self._service.sessions.view(parameter.session_in_path(request))
        remember_session(request, view.session.id)
        report = await self._service.commands.context_report(view.session)
        if report is None:
            raise refusal(404, "not_found", "This daemon has no figures about context windows.")
        return json_response(report.plain())

    async def agents(self, request: web.Request) -> web.Response:
        """List the subagents that work for a session, and those below them."""
        view = await self._service.sessions.view(parameter.session_in_path(request))
        session = remember_session(request, view.session.id)
        listed = [] if self._service.agents is None else await self._service.agents.listed(session)
        return json_response({"session_id": session, "agents": [await self._agent(each) for each in listed]})

    async def _agent(self, view: ChildView) -> presentation.JsonObject:
        task = view.duty.task
        if not task and view.session is not None:  # of a tool call: the first message has it
            first = await self._service.sessions.messages(view.session.id, Seq(-1), 1, exact=True)
            task = _text_of(first[0], ("user",)) if first else ""
        return presentation.subagent(view, task)

    async def messages(self, request: web.Request) -> web.Response:
        """Return messages after or before a position, oldest first; without one, the last page."""
        asked = query(request, MessagesQuery)
        after, before = (None if isinstance(each, UnsetType) else each for each in (asked.after, asked.before))
        if after is not None and before is not None:
            raise BadInputError("Give after or before, not both.", param="before", code="unprocessable")
        view = await self._service.view(parameter.session_in_path(request), exact=is_set(asked.exact))
        session = remember_session(request, view.session.id)
        place, end = (None if each is None else Seq(each) for each in (after, before))
        stored = await self._service.sessions.messages(session, place, asked.limit, exact=True, before=end)
        has_more = await self._has_more(session, stored, after)
        return json_response(
            {"session_id": session, "messages": presentation.transcript(stored), "has_more": has_more}
        )

    async def _has_more(self, session: SessionId, page: list[StoredMessage], after: int | None) -> bool:
        """Return True if there are later messages, or earlier ones if no `after` was given."""
        if not page:
            return False
        if after is not None:
            return bool(await self._service.sessions.messages(session, page[-1].seq, 1, exact=True))
        [first, *_] = await self._service.sessions.messages(session, Seq(-1), 1, exact=True) or page
        return first.seq < page[0].seq


def _filter_in(asked: SessionListQuery) -> session_list.SessionFilter:
    return session_list.SessionFilter(
        platform=asked.platform,
        phase=None if isinstance(asked.phase, UnsetType) else asked.phase,
        title=asked.title,
        person=asked.person,
        since=None if isinstance(asked.since, UnsetType) else asked.since,
        until=None if isinstance(asked.until, UnsetType) else asked.until,
        children=is_set(asked.children),
    )


def _start_in(asked: SessionListQuery) -> SessionId | Activity | None:
    if not isinstance(asked.cursor, UnsetType):
        return session_list.read_cursor(asked.cursor)
    return None if isinstance(asked.after, UnsetType) else SessionId(asked.after)


def _text_of(stored: StoredMessage, roles: Collection[str]) -> str:
    """Return the beginning of a message's text; empty if another role wrote it."""
    message = json.loads(stored.message)
    content = message.get("content")
    if isinstance(content, list):
        content = " ".join(part.get("text", "") for part in content if isinstance(part, dict))
    if message.get("role") not in roles or not isinstance(content, str):
        return ""
    text = " ".join(content.split())
    return text if len(text) <= PREVIEW_CHARACTERS else f"{text[: PREVIEW_CHARACTERS - 1]}…"
