"""OpenAI Responses: the request converted from chat messages. Nothing is stored at the provider."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.agent.models.protocols.responses_answer import StreamedResponse
from hermes.agent.models.protocols.responses_request import responses_body
from hermes.agent.models.protocols.wire import StreamedAnswer, Wire
from hermes.domain.provider import Provider
from hermes.ports.agent import ModelRequest


class ResponsesWire(Wire):
    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def path(self, _model: str) -> str:
        return "/responses"

    @property
    def headers(self) -> Mapping[str, str]:
        return {}

    def body(self, request: ModelRequest, model: str) -> bytes:
        return responses_body(request, model, self._provider)

    def answer(self, model: str, *, secret: str) -> StreamedAnswer:
        return StreamedResponse(model=model, secret=secret)
