"""Factory of the proxy to the model's provider."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.config.settings import Config
from hermes.domain.provider import WireProtocol
from hermes.ports.provider_proxy import ProviderProxy


def make_provider_proxy(config: Config, environ: Mapping[str, str]) -> ProviderProxy | None:
    """Return the proxy; None if the provider has no OpenAI-compatible endpoint."""
    model = config.model
    entry, base_url = model.entry, model.base_url or (model.entry.base_url if model.entry else "")
    if entry is None or not base_url or entry.protocol is WireProtocol.MESSAGES:
        return None
    from hermes.agent.models.endpoint_proxy import EndpointProxy  # noqa: PLC0415 - brings aiohttp along

    keys = [secret.reveal() for _, secret in model.api_keys(environ) if secret.reveal()]
    key = keys[0] if keys else ""
    headers = {} if not key else {entry.key_header: key} if entry.key_header else {"Authorization": f"Bearer {key}"}
    return EndpointProxy(base_url=base_url, headers=headers, secret=key, connect_timeout_s=model.connect_timeout_s)
