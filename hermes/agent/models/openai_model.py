"""Model behind any OpenAI-compatible endpoint.

The body is joined from encoded messages, so a turn costs only their copy. `chain` does the retries.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from hermes.agent.models.completion import StreamedCompletion, request_body
from hermes.agent.models.failure import address_of
from hermes.domain.errors import ModelError
from hermes.ports.agent import Model, ModelChunk, ModelRequest, ModelText

if TYPE_CHECKING:
    from hermes.agent.models.endpoint import Endpoint

OPENAI_URL = "https://api.openai.com/v1"
CONNECT_TIMEOUT_S = 10.0
IDLE_TIMEOUT_S = 60.0  # without a byte


class OpenAIModel(Model):
    def __init__(
        self,
        *,
        base_url: str,
        name: str,
        api_key: str | None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
    ) -> None:
        self._name = name
        self._base_url = base_url or OPENAI_URL
        self._key = api_key or ""
        self._connect_timeout_s = connect_timeout_s
        self._idle_timeout_s = idle_timeout_s
        self._endpoint: Endpoint | None = None
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        return self._name

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        endpoint = await self._opened()
        name = request.model or self.name
        completion = StreamedCompletion(model=name, secret=self._key)
        body = request_body(request, *_settings(name, request.reasoning))
        try:
            async with aclosing(endpoint.events(body, completion)) as events:
                async for data in events:
                    if text := completion.add(data):
                        yield ModelText(text=text)
            done = completion.done()
        except ModelError as error:
            address = address_of(self._base_url, secret=self._key)
            raise ModelError(replace(error.failure, address=address)) from error
        yield done

    async def close(self) -> None:
        endpoint, self._endpoint = self._endpoint, None
        if endpoint is not None:
            await endpoint.close()

    async def _opened(self) -> Endpoint:
        async with self._opening:
            if self._endpoint is None:
                self._endpoint = (await asyncio.to_thread(_endpoint))(
                    base_url=self._base_url,
                    key=self._key,
                    connect_timeout_s=self._connect_timeout_s,
                    idle_timeout_s=self._idle_timeout_s,
                )
            return self._endpoint


def _endpoint() -> type[Endpoint]:
    """Import the endpoint's class. Slow: call it in a thread."""
    from hermes.agent.models.endpoint import Endpoint  # noqa: PLC0415

    return Endpoint


def _settings(name: str, reasoning: str) -> list[bytes]:
    settings = [b'"model":' + json.dumps(name).encode()]
    if reasoning:
        settings.append(b'"reasoning_effort":' + json.dumps(reasoning).encode())
    return settings
