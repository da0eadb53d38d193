"""Port to the model provider's other services, such as embeddings and speech."""

from __future__ import annotations

from typing import Protocol

from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAnswer:
    status: int
    content_type: str
    body: bytes


class ProviderProxy(Protocol):
    @property
    def offered(self) -> bool:
        """Return whether the provider has an OpenAI-compatible endpoint."""

    async def forward(self, path: str, body: bytes, content_type: str) -> ProviderAnswer:
        """Send a request to the provider, with its key. Raises ModelError if it cannot be reached."""

    async def close(self) -> None: ...
