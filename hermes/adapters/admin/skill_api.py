"""Admin API for skills: one route for each thing that `hermes skills` does."""

from __future__ import annotations

from typing import Annotated

from aiohttp import web
from msgspec import Meta

from hermes.adapters.http.problem import refusal
from hermes.adapters.http.schema import AbsolutePath, Fields, Text
from hermes.adapters.http.service import Service, json_response
from hermes.domain.skill.skill import SkillError
from hermes.services.learning.skill_request import SkillRequest, SkillVerb, perform
from hermes.services.learning.skill_service import SkillService


class SkillBody(Fields):
    name: Annotated[Text, Meta(max_length=300)] = ""
    number: Annotated[int, Meta(ge=0, le=10**9)] = 0
    folder: AbsolutePath | None = None
    source: dict[str, Text] | None = None
    category: Annotated[Text, Meta(max_length=100)] = ""
    agreed: bool = False
    forced: bool = False
    update: bool = False


class SkillApi:
    def __init__(self, service: Service, skills: SkillService) -> None:
        self._service = service
        self._skills = skills

    def table(self) -> list[tuple[web.RouteDef, str]]:
        verbs = ", ".join(verb.value for verb in SkillVerb)
        return [
            (web.get("/skills", self.listed), "Skills, archived ones, and changes that wait for approval"),
            (web.post("/skills/{verb}", self.act), f'Skills: {verbs}; {{"name": ..., "number": ...}}'),
        ]

    async def listed(self, _request: web.Request) -> web.Response:
        return json_response(await perform(self._skills, SkillRequest(verb=SkillVerb.LIST)))

    async def act(self, request: web.Request) -> web.Response:
        try:
            verb = SkillVerb(request.match_info["verb"])
        except ValueError:
            raise refusal(404, "not_found", "There is no such route. GET / lists all routes.") from None
        body = await self._service.read_optional(request, SkillBody)
        asked = SkillRequest(
            verb=verb,
            name=body.name,
            number=body.number,
            folder=body.folder or "",
            source=body.source or {},
            category=body.category,
            agreed=body.agreed,
            forced=body.forced,
            update=body.update,
        )
        try:
            return json_response(await perform(self._skills, asked))
        except SkillError as error:
            raise refusal(400, error.code, f"{error}.") from error
