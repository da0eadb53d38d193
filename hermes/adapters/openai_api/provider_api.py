"""Embeddings, audio and images: passed to the model's provider, with its key. For the owner's key only."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from hermes.adapters.http import body, problem
from hermes.adapters.http.problem import Problem, ProblemError, refusal
from hermes.adapters.http.schema import Fields, decode
from hermes.adapters.http.service import Service
from hermes.domain.errors import ModelError

MAX_REQUEST_BYTES = 32 << 20
_UPLOAD_TIMEOUT_S = 120.0
PATHS = ("/v1/embeddings", "/v1/audio/speech", "/v1/audio/transcriptions", "/v1/images/generations")
_NOT_CONFIGURED = (
    "Embeddings, audio and images are passed to the provider of the model, and this Hermes has no OpenAI-compatible "
    "one (model.provider, model.base_url)."
)
_REFUSED = (401, 403)  # the provider does not accept our key: not the client's fault


class EmbeddingsRequest(Fields):
    """The provider checks the other fields."""

    input: str | list[Any]
    model: str | None = None


class SpeechRequest(Fields):
    """The provider checks the other fields."""

    input: str
    model: str | None = None


class ImageRequest(Fields):
    """The provider checks the other fields."""

    prompt: str
    model: str | None = None


class ProviderApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[web.RouteDef]:
        handlers = (self.embeddings, self.speech, self.transcription, self.images)
        return [web.post(path, handler) for path, handler in zip(PATHS, handlers, strict=True)]

    async def embeddings(self, request: web.Request) -> web.Response:
        return await self._forward(request, EmbeddingsRequest)

    async def speech(self, request: web.Request) -> web.Response:
        return await self._forward(request, SpeechRequest)

    async def transcription(self, request: web.Request) -> web.Response:
        return await self._forward(request, None)

    async def images(self, request: web.Request) -> web.Response:
        return await self._forward(request, ImageRequest)

    async def _forward(self, request: web.Request, kind: type[Fields] | None) -> web.Response:
        """Pass the body on as it is. `kind` is the type of a body of JSON; without one it is a form."""
        provider = self._service.provider
        if provider is None or not provider.offered:
            raise ProblemError(Problem(status=501, code="not_offered", message=_NOT_CONFIGURED, close=True))
        wanted = "multipart/form-data" if kind is None else "application/json"
        if request.content_type != wanted:
            raise refusal(415, "unsupported_media_type", f"Send the body as Content-Type: {wanted}.", close=True)
        sent = await body.read(request, limit_bytes=MAX_REQUEST_BYTES, timeout_s=_UPLOAD_TIMEOUT_S)
        if kind is not None:
            decode(await asyncio.to_thread(body.parse, sent), kind)
        try:
            answer = await provider.forward(request.path.removeprefix("/v1"), sent, request.headers["Content-Type"])
        except ModelError as error:
            raise ProblemError(problem.of_failure(error.failure, keyed=False)) from error
        if answer.status in _REFUSED:
            message = "The provider refused Hermes' key for this request."
            raise ProblemError(Problem(status=502, code="upstream_auth", message=message))
        return web.Response(status=answer.status, body=answer.body, headers={"Content-Type": answer.content_type})
