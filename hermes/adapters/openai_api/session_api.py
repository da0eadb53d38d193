"""Stored sessions: the list, one of them, its transcript, its end. Any id of a lineage means its live end."""

from __future__ import annotations

from aiohttp import web

from hermes.adapters import presentation
from hermes.adapters.openai_api import parameter
from hermes.adapters.openai_api.service import Service, json_response, remember_session
from hermes.types import Seq

MAX_LISTED = 200
MAX_MESSAGES = 1_000


class SessionApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/sessions", self.recent),
            web.get("/api/sessions/{id}", self.one),
            web.delete("/api/sessions/{id}", self.erase),
            web.get("/api/sessions/{id}/messages", self.messages),
        ]

    async def recent(self, request: web.Request) -> web.Response:
        limit = parameter.integer(request, "limit", low=1, high=MAX_LISTED) or 50
        after = parameter.session_in_query(request, "after")
        sessions = await self._service.sessions.recent(limit, after)
        return json_response({"sessions": [presentation.session(session) for session in sessions]})

    async def one(self, request: web.Request) -> web.Response:
        view = await self._service.sessions.view(parameter.session_in_path(request))
        remember_session(request, view.session.id)
        return json_response(presentation.view(view))

    async def erase(self, request: web.Request) -> web.Response:
        session = remember_session(request, parameter.session_in_path(request))
        await self._service.sessions.erase(session)
        return json_response({"id": session, "deleted": True})

    async def messages(self, request: web.Request) -> web.Response:
        """After a position, oldest first; without one, the last of them."""
        limit = parameter.integer(request, "limit", low=1, high=MAX_MESSAGES) or 100
        after = parameter.integer(request, "after", low=-1, high=2**63 - 1)
        view = await self._service.sessions.view(parameter.session_in_path(request))
        session = remember_session(request, view.session.id)
        stored = await self._service.sessions.messages(session, None if after is None else Seq(after), limit)
        return json_response({"session_id": session, "messages": presentation.transcript(stored)})
