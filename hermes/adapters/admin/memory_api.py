"""Admin API for memory: one route for each thing that `hermes memory` does."""

from __future__ import annotations

from typing import Annotated

from aiohttp import web
from msgspec import Meta

from hermes.adapters.http.problem import refusal
from hermes.adapters.http.schema import Fields, Text
from hermes.adapters.http.service import Service, json_response
from hermes.domain.memory.scope import MemoryTarget
from hermes.services.memory.memory_request import MemoryRequest, MemoryVerb, perform, scope_named
from hermes.services.memory.memory_service import MemoryService


class MemoryBody(Fields):
    person: Annotated[Text, Meta(max_length=300)] = ""
    target: MemoryTarget | None = None
    number: Annotated[int, Meta(ge=0, le=10**9)] | None = None
    content: Annotated[Text, Meta(max_length=100_000)] = ""
    old_text: Annotated[Text, Meta(max_length=100_000)] = ""


class MemoryApi:
    def __init__(self, service: Service, memories: MemoryService) -> None:
        self._service = service
        self._memories = memories

    def table(self) -> list[tuple[web.RouteDef, str]]:
        verbs = ", ".join(verb.value for verb in MemoryVerb)
        return [(web.post("/memory/{verb}", self.act), f'Memory: {verbs}; {{"person": ..., "target": ..., ...}}')]

    async def act(self, request: web.Request) -> web.Response:
        try:
            verb = MemoryVerb(request.match_info["verb"])
        except ValueError:
            raise refusal(404, "not_found", "There is no such route. GET / lists all routes.") from None
        body = await self._service.read_optional(request, MemoryBody)
        asked = MemoryRequest(
            verb=verb,
            target=body.target,
            number=body.number,
            content=body.content,
            old_text=body.old_text,
            by="cli",
        )
        return json_response(await perform(self._memories, scope_named(self._memories, body.person), asked))
