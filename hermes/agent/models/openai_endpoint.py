"""Transport of the `openai` package at its lowest level: the request is bytes, and so is the answer.

The package adds addresses and versions of Azure OpenAI. Importing it takes half a second and some 25 MB
(docs/decisions/0026-openai-package.md).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2
import openai

from hermes import __version__
from hermes.agent.models.failure import address_of, from_status, from_transport
from hermes.agent.models.protocols.wire import StreamedAnswer
from hermes.agent.models.transport import LIST_S, EventReader, Transport, check_kind, names_in
from hermes.domain.errors import ModelError

_UNUSED_KEY = "none"  # the package insists on one; each request has its own headers


class OpenaiEndpoint(Transport):
    def __init__(
        self, *, base_url: str, connect_timeout_s: float, idle_timeout_s: float, api_version: str = ""
    ) -> None:
        """Slow, and it reads files: call it in a thread. With an API version, the address is an Azure resource."""
        self._base_url = base_url
        self._idle_timeout_s = idle_timeout_s
        options: dict[str, Any] = {
            "api_key": _UNUSED_KEY,
            "timeout": openai.Timeout(idle_timeout_s, connect=connect_timeout_s),
            "max_retries": 0,
            "default_headers": {"User-Agent": f"hermes/{__version__}"},
        }
        self._client: openai.AsyncOpenAI = (
            openai.AsyncAzureOpenAI(azure_endpoint=base_url, api_version=api_version, **options)
            if api_version
            else openai.AsyncOpenAI(base_url=base_url, **options)
        )

    async def events(
        self, path: str, body: bytes, headers: Mapping[str, str], answer: StreamedAnswer, *, secret: str
    ) -> AsyncGenerator[list[bytes], None]:
        with translated(address_of(self._base_url, secret=secret), secret):
            stream = await self._posted(path, body, own_headers(headers))
            try:
                check_kind(stream.response.headers.get("content-type", ""))
                chunks, broken = stream.response.aiter_bytes(), (httpx2.HTTPError,)
                reader = EventReader(chunks, answer, idle_timeout_s=self._idle_timeout_s, broken=broken)
                while (together := await reader.next()) is not None:
                    yield together
            finally:
                await stream.close()

    async def listed(self, headers: Mapping[str, str], *, secret: str) -> object:
        """Return the list of models. Raises ModelError."""
        options: Any = {"headers": own_headers(headers), "follow_redirects": False}
        with translated(address_of(self._base_url, secret=secret), secret):
            return await self._client.get("/models", cast_to=object, options=options)

    async def _posted(
        self, path: str, body: bytes, headers: Mapping[str, str | openai.Omit]
    ) -> openai.AsyncStream[object]:
        return await self._client.post(
            path,
            content=body,
            cast_to=object,
            options={"headers": headers, "follow_redirects": False},
            stream=True,
            stream_cls=openai.AsyncStream[object],
        )

    async def model_names(self, headers: Mapping[str, str]) -> list[str]:
        try:
            async with asyncio.timeout(LIST_S):
                return names_in(await self.listed(headers, secret=""))
        except (ModelError, TimeoutError):
            return []

    async def close(self) -> None:
        await self._client.close()


def own_headers(headers: Mapping[str, str]) -> dict[str, str | openai.Omit]:
    """Return the headers without the key that the package would add."""
    return {"Authorization": openai.Omit(), "api-key": openai.Omit(), **headers}


@contextmanager
def translated(address: str, secret: str) -> Iterator[None]:
    """Turn errors of the package and of its transport into ModelError."""
    try:
        yield
    except openai.APIStatusError as error:
        status, headers, body = error.status_code, error.response.headers, error.response.content
        raise ModelError(
            from_status(status, headers, body, secret=secret, now=time.time(), address=address)
        ) from error
    except openai.APITimeoutError as error:
        raise ModelError(from_transport(TimeoutError(), address=address)) from error
    except httpx2.TimeoutException as error:
        raise ModelError(from_transport(TimeoutError(), address=address)) from error
    except (openai.APIConnectionError, httpx2.HTTPError, OSError) as error:
        raise ModelError(from_transport(error, address=address)) from error
