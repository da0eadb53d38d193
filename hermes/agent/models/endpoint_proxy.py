"""Requests that are passed to the provider unchanged: embeddings, audio and images.

They go over aiohttp: the `openai` package cannot send a form that is encoded already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes import __version__
from hermes.agent.models.endpoint_model import authorization
from hermes.agent.models.failure import address_of, from_transport
from hermes.domain.errors import ModelError
from hermes.domain.values import dataclass
from hermes.ports.provider_proxy import ProviderAnswer, ProviderProxy
from hermes.system.proxy_environment import proxy_for

if TYPE_CHECKING:
    import aiohttp

MAX_ANSWER_BYTES = 64 << 20
TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyTarget:
    """Endpoint that requests are passed to."""

    base_url: str
    key: str = ""
    key_header: str = ""
    connect_timeout_s: float = 10.0


class EndpointProxy(ProviderProxy):
    def __init__(self, target: ProxyTarget | None) -> None:
        self._target = target
        self._session: aiohttp.ClientSession | None = None

    @property
    def offered(self) -> bool:
        return self._target is not None

    def use(self, target: ProxyTarget | None) -> None:
        """Pass later requests to this endpoint."""
        self._target = target

    async def forward(self, path: str, body: bytes, content_type: str) -> ProviderAnswer:
        import aiohttp  # noqa: PLC0415 - slow

        target = self._target
        assert target is not None, "nothing is offered"
        if self._session is None:
            own = {"User-Agent": f"hermes/{__version__}"}
            self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), headers=own)
        try:
            async with self._session.post(
                f"{target.base_url.rstrip('/')}{path}",
                data=body,
                headers={**authorization(target.key, target.key_header), "Content-Type": content_type},
                proxy=proxy_for(target.base_url),
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S, connect=target.connect_timeout_s),
                allow_redirects=False,
            ) as response:
                answer = await response.content.read(MAX_ANSWER_BYTES)
                kind = response.headers.get("Content-Type", "application/octet-stream")
                return ProviderAnswer(status=response.status, content_type=kind, body=answer)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            address = address_of(target.base_url, secret=target.key)
            raise ModelError(from_transport(error, address=address)) from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
