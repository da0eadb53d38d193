"""Requests that are passed to the provider unchanged: embeddings and audio."""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp

from hermes import __version__
from hermes.agent.models.failure import address_of, from_transport
from hermes.domain.errors import ModelError
from hermes.ports.provider_proxy import ProviderAnswer, ProviderProxy
from hermes.system.proxy_environment import proxy_for

MAX_ANSWER_BYTES = 64 << 20
TIMEOUT_S = 300.0


class EndpointProxy(ProviderProxy):
    def __init__(self, *, base_url: str, headers: Mapping[str, str], secret: str, connect_timeout_s: float) -> None:
        self._base_url = base_url.rstrip("/")
        self._headers = {**headers, "User-Agent": f"hermes/{__version__}"}
        self._secret = secret
        self._timeout = aiohttp.ClientTimeout(total=TIMEOUT_S, connect=connect_timeout_s)
        self._session: aiohttp.ClientSession | None = None

    async def forward(self, path: str, body: bytes, content_type: str) -> ProviderAnswer:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(), headers=self._headers, proxy=proxy_for(self._base_url)
            )
        try:
            async with self._session.post(
                f"{self._base_url}{path}",
                data=body,
                headers={"Content-Type": content_type},
                timeout=self._timeout,
                allow_redirects=False,
            ) as response:
                answer = await response.content.read(MAX_ANSWER_BYTES)
                kind = response.headers.get("Content-Type", "application/octet-stream")
                return ProviderAnswer(status=response.status, content_type=kind, body=answer)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            address = address_of(self._base_url, secret=self._secret)
            raise ModelError(from_transport(error, address=address)) from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
