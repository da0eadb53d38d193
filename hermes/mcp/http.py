"""Transports to an MCP server on the network: streamable HTTP and SSE. Imports the SDK."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from hermes.domain.mcp.server_spec import McpServerSpec, TransportKind

MAX_BODY: Final = 16 << 20  # bytes of an answer that is not a stream of events
_STEP_S: Final = 30.0
_EVENT_STREAM: Final = "text/event-stream"


class TooLongAnswerError(httpx2.HTTPError):
    """The server's answer is longer than the limit."""


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._inner:
            size += len(part)
            if size > MAX_BODY:
                raise TooLongAnswerError(f"an answer has more than {MAX_BODY >> 20} MB")
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


class _LimitedTransport(httpx2.AsyncHTTPTransport):
    """Transport that limits answers. The SDK limits the events of a stream itself."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if not response.headers.get("content-type", "").startswith(_EVENT_STREAM):
            response.stream = _LimitedStream(response.stream)
        return response


def make_http_client(
    headers: Mapping[str, str] | None = None,
    timeout: httpx2.Timeout | None = None,
    auth: Any = None,
    *,
    trusted: ssl.SSLContext,
    read_s: float = 300.0,
) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        headers=dict(headers or {}),
        timeout=timeout or httpx2.Timeout(_STEP_S, read=read_s),
        auth=auth,
        transport=_LimitedTransport(verify=trusted),
        follow_redirects=False,
    )


@asynccontextmanager
async def http_transport(
    spec: McpServerSpec, headers: Mapping[str, str], auth: Any
) -> AsyncGenerator[TransportStreams, None]:
    trusted = await asyncio.to_thread(httpx2.create_ssl_context)  # reads the certificates of authorities
    read_s = max(spec.timeout_s, spec.keepalive_s) + _STEP_S
    if spec.transport is TransportKind.SSE:

        def factory(
            headers: Mapping[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: Any = None,
        ) -> httpx2.AsyncClient:
            return make_http_client(headers, timeout, auth, trusted=trusted)

        client = sse_client(
            spec.url, dict(headers), timeout=_STEP_S, sse_read_timeout=read_s, httpx_client_factory=factory, auth=auth
        )
        async with client as streams:
            yield streams
        return
    async with (
        make_http_client(headers, auth=auth, trusted=trusted, read_s=read_s) as http,
        streamable_http_client(spec.url, http_client=http) as streams,
    ):
        yield streams
