"""GET /v1/models: the model names that a client can use. They mean the same agent; `hermes:chat` has no tools."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.http.problem import Problem, ProblemError
from hermes.adapters.http.service import Service, json_response
from hermes.adapters.openai_api.turns.tool_wish import NO_TOOLS_MODEL

_LISTED = ("hermes-agent", NO_TOOLS_MODEL)  # besides our name and the configured model
ALIASES = ("hermes", "default", *_LISTED)  # always accepted


def check_model(name: str, known: Sequence[str]) -> None:
    if name not in known and name not in ALIASES:
        message = f"There is no model {name[:80]!r}. Available: {', '.join(known)}."
        raise ProblemError(Problem(status=404, code="model_not_found", message=message, param="model"))


class ModelApi:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._created = int(service.clock())

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/v1/models", self.all), web.get("/v1/models/{id:.+}", self.one)]

    async def all(self, _request: web.Request) -> web.Response:
        names = dict.fromkeys((*self._service.models(), *_LISTED))
        return json_response({"object": "list", "data": [self._model(name) for name in names]})

    async def one(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        check_model(name, self._service.models())
        return json_response(self._model(name))

    def _model(self, name: str) -> JsonObject:
        return {"id": name, "object": "model", "created": self._created, "owned_by": "hermes"}
