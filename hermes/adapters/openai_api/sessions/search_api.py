"""GET /api/search: search over the messages of all sessions."""

from __future__ import annotations

from typing import Annotated, Literal

from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from hermes.adapters.http import presentation
from hermes.adapters.http.caller import CALLER
from hermes.adapters.http.parameter import query
from hermes.adapters.http.presentation import JsonObject, findings
from hermes.adapters.http.problem import refusal
from hermes.adapters.http.schema import Fields, FilledText, SessionIdText, Text
from hermes.adapters.http.service import Service, json_response
from hermes.domain.errors import UnknownSessionError
from hermes.domain.ids import SessionId
from hermes.domain.session.state import Session
from hermes.ports.search import Findings, SearchFilter

MAX_HITS = 1_000
MAX_QUERY = 400


class SearchQuery(Fields):
    q: Annotated[FilledText, Meta(max_length=MAX_QUERY)]
    limit: Annotated[int, Meta(ge=1, le=MAX_HITS)] = 20
    session_id: SessionIdText | UnsetType = UNSET
    role: Literal["user", "assistant", "tool"] | UnsetType = UNSET
    since: Annotated[float, Meta(ge=0, le=2**40)] | UnsetType = UNSET
    until: Annotated[float, Meta(ge=0, le=2**40)] | UnsetType = UNSET
    platform: Annotated[Text, Meta(max_length=80)] = ""
    person: Annotated[Text, Meta(max_length=200)] = ""

    def narrowed(self) -> SearchFilter:
        return SearchFilter(
            session=None if isinstance(self.session_id, UnsetType) else SessionId(self.session_id),
            role=None if isinstance(self.role, UnsetType) else self.role,
            since=None if isinstance(self.since, UnsetType) else self.since,
            until=None if isinstance(self.until, UnsetType) else self.until,
            platform=self.platform,
            person=self.person,
        )


class SearchApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/api/search", self.search)]

    async def search(self, request: web.Request) -> web.Response:
        asked = query(request, SearchQuery)
        if self._service.search is None:
            raise refusal(501, "no_search", "This daemon has no search index.")
        found = await self._service.search.search(
            asked.q,
            limit=asked.limit if CALLER.get(None) is None else MAX_HITS,
            only=asked.narrowed(),
        )
        return json_response(findings(asked.q, await self._shown(found, asked.limit), found.index))

    async def _shown(self, found: Findings, limit: int) -> list[JsonObject]:
        """Return the hits in sessions that the caller may reach."""
        heads: dict[SessionId, Session | None] = {}
        shown: list[JsonObject] = []
        for hit in found.hits:
            if hit.session not in heads:
                heads[hit.session] = await self._head(hit.session)
            head = heads[hit.session]
            if head is not None and len(shown) < limit:
                shown.append({**presentation.hit(hit), "title": head.preferences.title, "platform": head.platform})
        return shown

    async def _head(self, session: SessionId) -> Session | None:
        try:
            return await self._service.sessions.conversation(session)
        except UnknownSessionError:
            return None
