"""Model behind an HTTP endpoint that streams events, in one of the wire protocols.

`chain` does the retries. A key that the endpoint refuses is replaced by the next one of the pool before that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from http import HTTPStatus

from hermes.agent.models.failure import address_of, with_near_names, with_remedy
from hermes.agent.models.key_pool import KeyPool, ProviderKey
from hermes.agent.models.protocols.wire import StreamedAnswer, Wire
from hermes.agent.models.transport import Transport
from hermes.domain.errors import ModelError
from hermes.domain.values import replace
from hermes.ports.agent import Model, ModelChunk, ModelReasoning, ModelRequest, ModelText

BIG_BYTES = 256 << 10  # a larger transcript is encoded in a thread


class EndpointModel(Model):
    def __init__(
        self,
        *,
        wire: Wire,
        base_url: str,
        name: str,
        keys: KeyPool,
        transport: Callable[[], Awaitable[Transport]],
        provider: str = "",
        key_header: str = "",
    ) -> None:
        """`transport` opens the endpoint; its slow imports wait until the first call."""
        self._wire = wire
        self._name = name
        self._provider = provider
        self._base_url = base_url
        self._keys = keys
        self._key_header = key_header
        self._transport = transport
        self._endpoint: Transport | None = None
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        return self._name

    @property
    def provider(self) -> str:
        return self._provider

    @property
    def endpoint(self) -> str:
        return address_of(self._base_url)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        endpoint = await self._opened()
        name = request.model or self.name
        body = await self._body(request, name)
        begun = False
        for _ in range(self._keys.size):
            key = self._keys.current()
            try:
                async with aclosing(self._call(endpoint, body, name, key)) as chunks:
                    async for chunk in chunks:
                        begun = True
                        yield chunk
            except ModelError as error:
                failure = replace(error.failure, address=address_of(self._base_url, secret=key.value))
                if self._keys.rotate(key, failure) and not begun:
                    continue
                if failure.status == HTTPStatus.NOT_FOUND:
                    known = await endpoint.model_names(self._headers(key))
                    failure = with_near_names(failure, name, known)
                raise ModelError(with_remedy(failure, key.source)) from error
            return

    async def close(self) -> None:
        endpoint, self._endpoint = self._endpoint, None
        if endpoint is not None:
            await endpoint.close()

    async def _call(
        self, endpoint: Transport, body: bytes, name: str, key: ProviderKey
    ) -> AsyncGenerator[ModelChunk, None]:
        answer = self._wire.answer(name, secret=key.value)
        sent = endpoint.events(self._wire.path(name), body, self._headers(key), answer, secret=key.value)
        async with aclosing(sent) as events:
            async for together in events:
                for chunk in _chunks(together, answer):
                    yield chunk
        yield answer.done()

    def _headers(self, key: ProviderKey) -> dict[str, str]:
        return {**self._wire.headers, **authorization(key.value, self._key_header)}

    async def _body(self, request: ModelRequest, name: str) -> bytes:
        if (request.size_bytes or sum(map(len, request.messages))) > BIG_BYTES:
            return await asyncio.to_thread(self._wire.body, request, name)
        return self._wire.body(request, name)

    async def _opened(self) -> Transport:
        async with self._opening:
            if self._endpoint is None:
                self._endpoint = await self._transport()
            return self._endpoint


def _chunks(together: list[bytes], answer: StreamedAnswer) -> Iterator[ModelChunk]:
    """Yield what the events hold. Text that arrived together is one piece: each piece wakes its readers."""
    text = ""
    try:
        for data in together:
            more = answer.add(data)
            if answer.thought:
                if text:
                    yield ModelText(text=text)
                text = ""
                yield ModelReasoning(text=answer.thought)
            text += more
    except ModelError:
        if text:
            yield ModelText(text=text)
        raise
    if text:
        yield ModelText(text=text)


def authorization(key: str, header: str) -> dict[str, str]:
    if not key:
        return {}
    return {header: key} if header else {"Authorization": f"Bearer {key}"}
