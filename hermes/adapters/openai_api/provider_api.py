"""Embeddings and audio: passed to the model's provider, with its key. For the owner's key only."""

from __future__ import annotations

from aiohttp import web

from hermes.adapters.http import body, problem
from hermes.adapters.http.problem import Problem, ProblemError
from hermes.adapters.http.service import Service
from hermes.domain.errors import ModelError

MAX_REQUEST_BYTES = 32 << 20
_UPLOAD_TIMEOUT_S = 120.0
PATHS = ("/v1/embeddings", "/v1/audio/speech", "/v1/audio/transcriptions")
_NOT_CONFIGURED = (
    "Embeddings and audio are passed to the provider of the model, and this Hermes has no OpenAI-compatible one "
    "(model.provider, model.base_url)."
)
_REFUSED = (401, 403)  # the provider does not accept our key: not the client's fault


class ProviderApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[web.RouteDef]:
        return [web.post(path, self.forward) for path in PATHS]

    async def forward(self, request: web.Request) -> web.Response:
        provider = self._service.provider
        if provider is None:
            raise ProblemError(Problem(status=501, code="not_offered", message=_NOT_CONFIGURED, close=True))
        sent = await body.read(request, limit_bytes=MAX_REQUEST_BYTES, timeout_s=_UPLOAD_TIMEOUT_S)
        kind = request.headers.get("Content-Type", "application/json")
        try:
            answer = await provider.forward(request.path.removeprefix("/v1"), sent, kind)
        except ModelError as error:
            raise ProblemError(problem.of_failure(error.failure, keyed=False)) from error
        if answer.status in _REFUSED:
            message = "The provider refused Hermes' key for this request."
            raise ProblemError(Problem(status=502, code="upstream_auth", message=message))
        return web.Response(status=answer.status, body=answer.body, headers={"Content-Type": answer.content_type})
