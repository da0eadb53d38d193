"""Stored sessions: list, details, transcript, erasure.

Any id of a lineage means its live end, unless `exact` asks for this session.
"""

from __future__ import annotations

from typing import Annotated

from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from hermes.adapters.http import parameter, presentation
from hermes.adapters.http.parameter import is_set, query
from hermes.adapters.http.schema import Fields, Flag, SessionIdText
from hermes.adapters.http.service import Service, json_response, remember_session
from hermes.adapters.openai_api.turns import pending
from hermes.domain.ids import Seq, SessionId
from hermes.domain.read.views import StoredMessage

MAX_LISTED = 200
MAX_MESSAGES = 1_000


class SessionListQuery(Fields):
    limit: Annotated[int, Meta(ge=1, le=MAX_LISTED)] = 50
    after: SessionIdText | UnsetType = UNSET


class SessionQuery(Fields):
    exact: Flag = "0"


class MessagesQuery(Fields):
    limit: Annotated[int, Meta(ge=1, le=MAX_MESSAGES)] = 100
    after: Annotated[int, Meta(ge=-1, le=2**63 - 1)] | UnsetType = UNSET
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
        ]

    async def recent(self, request: web.Request) -> web.Response:
        asked = query(request, SessionListQuery)
        sessions = await self._service.sessions.recent(asked.limit, SessionId(asked.after) if asked.after else None)
        return json_response({"sessions": [presentation.session(session) for session in sessions]})

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

    async def messages(self, request: web.Request) -> web.Response:
        """Return messages after a position, oldest first; without one, the last page."""
        asked = query(request, MessagesQuery)
        limit, after = asked.limit, None if isinstance(asked.after, UnsetType) else asked.after
        view = await self._service.view(parameter.session_in_path(request), exact=is_set(asked.exact))
        session = remember_session(request, view.session.id)
        place = None if after is None else Seq(after)
        stored = await self._service.sessions.messages(session, place, limit, exact=True)
        has_more = await self._has_more(session, stored, after)
        return json_response(
            {"session_id": session, "messages": presentation.transcript(stored), "has_more": has_more}
        )

    async def _has_more(self, session: SessionId, page: list[StoredMessage], after: int | None) -> bool:
        """Return True if there are later messages, or earlier ones if the last page was requested."""
        if not page:
            return False
        if after is not None:
            return bool(await self._service.sessions.messages(session, page[-1].seq, 1, exact=True))
        [first, *_] = await self._service.sessions.messages(session, Seq(-1), 1, exact=True) or page
        return first.seq < page[0].seq
