"""POST /api/sessions and PATCH /api/sessions/{id}: create a session, change its title, model and preferences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from aiohttp import web
from msgspec import Meta

from hermes.adapters.http import parameter, presentation
from hermes.adapters.http.problem import refusal
from hermes.adapters.http.schema import Fields, SessionIdText, Text
from hermes.adapters.http.service import Service, json_response, remember_session
from hermes.domain.access.role import Role
from hermes.domain.errors import BadInputError, UnknownSessionError
from hermes.domain.ids import SessionId
from hermes.domain.session.state import Session
from hermes.domain.source import Source
from hermes.domain.text.title import MAX_TITLE
from hermes.services.commands.registry import COMMANDS

_REASON = "requested over the API"
ModelName: TypeAlias = Annotated[str, Meta(pattern=r"^[!-~]{0,200}$(?!\n)", description="the name of a model")]
Title: TypeAlias = Annotated[Text, Meta(max_length=MAX_TITLE)]


class SessionChange(Fields):
    """Changes of a session. An empty text restores the configured value."""

    title: Title | None = None
    model: ModelName | None = None
    personality: Text | None = None
    reasoning: Literal["", "none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"] | None = None
    busy: Literal["", "queue", "steer", "interrupt"] | None = None
    yolo: bool | None = None


class SessionRequest(SessionChange):
    id: SessionIdText | None = None
    user: Text = ""


class SessionEditApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/api/sessions", self.create), web.patch("/api/sessions/{id}", self.change)]

    async def create(self, request: web.Request) -> web.Response:
        """Create an empty session. An id of the client's choice must be unused."""
        asked = await self._service.read_optional(request, SessionRequest)
        wanted = self._preferences(asked, self._service.source(request))
        session = None if asked.id is None else SessionId(asked.id)
        self._service.lifetime.check_intake()
        if session is not None and await self._exists(session):
            raise refusal(409, "session_exists", f"There is a session {session}. PATCH changes it.")
        source = self._service.source(request, asked.user)
        begun = await self._service.sessions.begin(source, session=session, title=str(wanted.pop("title", "")))
        return await self._apply(request, begun, wanted, status=201)

    async def change(self, request: web.Request) -> web.Response:
        """Change what is given, and nothing else. An empty text restores the configured value."""
        asked = await self._service.read(request, SessionChange)
        wanted = self._preferences(asked, self._service.source(request))
        if not wanted:
            raise BadInputError("Give at least one field to change.", code="unprocessable")
        view = await self._service.sessions.view(parameter.session_in_path(request))
        return await self._apply(request, view.session, wanted)

    async def _exists(self, session: SessionId) -> bool:
        try:
            await self._service.sessions.view(session)
        except UnknownSessionError:
            return False
        return True

    async def _apply(
        self, request: web.Request, session: Session, wanted: Mapping[str, str | bool], status: int = 200
    ) -> web.Response:
        for name, value in wanted.items():
            session = await self._service.sessions.prefer(session.id, name, value, _REASON)
        remember_session(request, session.id)
        body = {
            "session_id": session.id,
            "session": presentation.session(session),
            "preferences": presentation.plain(session.preferences),
        }
        return json_response(body, status=status)

    def _preferences(self, asked: SessionChange, source: Source) -> dict[str, str | bool]:
        """Return what is given. Each field needs the role of the slash command with its name."""
        given = {name: getattr(asked, name) for name in SessionChange.__struct_fields__}
        wanted: dict[str, str | bool] = {name: value for name, value in given.items() if value is not None}
        for name in wanted:
            needs = next((each.needs for each in COMMANDS if each.name == name), Role.OWNER)
            if not source.standing.includes(needs):
                raise refusal(403, "not_for_this_key", f"{name} needs the role {needs}.")
        if asked.yolo and (source.standing is not Role.OWNER or not self._service.allow_yolo):
            raise refusal(403, "not_for_this_key", "yolo is not allowed over the API (api.allow_yolo).")
        known = ("", "none", *self._service.commands.personalities())
        if asked.personality is not None and asked.personality not in known:
            message = f"personality must be one of {', '.join(known[1:])}, or empty."
            raise BadInputError(message, param="personality", code="unprocessable")
        return wanted
