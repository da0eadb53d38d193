"""Model behind the OpenAI Responses API, called by the `openai` package at its lowest level.

The first call imports the package.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from hermes.agent.models.endpoint_model import BIG_BYTES, CONNECT_TIMEOUT_S, IDLE_TIMEOUT_S
from hermes.agent.models.failure import (
    address_of,
    malformed,
    with_remedy,
)
from hermes.agent.models.key_pool import KeyPool, ProviderKey
from hermes.agent.models.openai_client import make_client, translated
from hermes.agent.models.protocols.completion import mapping
from hermes.agent.models.protocols.responses_answer import StreamedResponse
from hermes.agent.models.protocols.responses_request import responses_body
from hermes.domain.errors import ModelError
from hermes.domain.provider import Provider
from hermes.domain.values import replace
from hermes.ports.agent import Model, ModelChunk, ModelReasoning, ModelRequest, ModelText

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_PATH = "/responses"


class ResponsesModel(Model):
    def __init__(
        self,
        *,
        provider: Provider,
        base_url: str,
        name: str,
        keys: KeyPool,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
    ) -> None:
        self._provider = provider
        self._name = name
        self._base_url = base_url
        self._keys = keys
        self._connect_timeout_s = connect_timeout_s
        self._idle_timeout_s = idle_timeout_s
        self._clients: dict[ProviderKey, AsyncOpenAI] = {}
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        return self._name

    @property
    def provider(self) -> str:
        return self._provider.name

    @property
    def endpoint(self) -> str:
        return address_of(self._base_url)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        name = request.model or self.name
        big = sum(map(len, request.messages)) > BIG_BYTES
        body = (
            await asyncio.to_thread(responses_body, request, name, self._provider)
            if big
            else (responses_body(request, name, self._provider))
        )
        begun = False
        for _ in range(self._keys.size):
            key = self._keys.current()
            try:
                async with aclosing(self._call(body, name, key)) as chunks:
                    async for chunk in chunks:
                        begun = True
                        yield chunk
            except ModelError as error:
                failure = replace(error.failure, address=address_of(self._base_url, secret=key.value))
                if self._keys.rotate(key, failure) and not begun:
                    continue
                raise ModelError(with_remedy(failure, key.source)) from error
            return

    async def close(self) -> None:
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()

    async def _call(self, body: bytes, name: str, key: ProviderKey) -> AsyncGenerator[ModelChunk, None]:
        client = await self._client(key)
        answer = StreamedResponse(model=name, secret=key.value)
        with translated(address_of(self._base_url, secret=key.value), key.value):
            async with await _opened(client, body) as events:
                async for event in events:
                    text = answer.add(mapping(event))
                    if answer.thought:
                        yield ModelReasoning(text=answer.thought)
                    if text:
                        yield ModelText(text=text)
        yield answer.done()

    async def _client(self, key: ProviderKey) -> AsyncOpenAI:
        async with self._opening:
            if key not in self._clients:
                self._clients[key] = await asyncio.to_thread(
                    make_client,
                    self._provider,
                    base_url=self._base_url,
                    key=key.value,
                    connect_timeout_s=self._connect_timeout_s,
                    idle_timeout_s=self._idle_timeout_s,
                )
            return self._clients[key]


async def _opened(client: AsyncOpenAI, body: bytes) -> Any:
    from openai import AsyncStream  # noqa: PLC0415 - imported already

    stream = await client.post(_PATH, content=body, cast_to=object, stream=True, stream_cls=AsyncStream[object])
    kind = stream.response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "text/event-stream":
        await stream.close()
        raise malformed(f"the model endpoint sent {kind[:60]!r} instead of a stream of events")
    return stream
