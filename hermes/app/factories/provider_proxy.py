"""Target of the requests that are passed to the model's provider."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.agent.models.endpoint_proxy import ProxyTarget
from hermes.config.settings import Config
from hermes.domain.provider import WireProtocol


def proxy_target(config: Config, environ: Mapping[str, str]) -> ProxyTarget | None:
    """Return the endpoint of the configured provider; None if it is not OpenAI-compatible. Raises ConfigError."""
    model = config.model
    entry, base_url = model.entry, model.base_url or (model.entry.base_url if model.entry else "")
    if entry is None or not base_url or entry.protocol is WireProtocol.MESSAGES or model.api_version:
        return None  # the dated API of Azure has other paths
    keys = [secret.reveal() for _, secret in model.api_keys(environ) if secret.reveal()]
    return ProxyTarget(
        base_url=base_url,
        key=keys[0] if keys else "",
        key_header=entry.key_header,
        connect_timeout_s=model.connect_timeout_s,
    )
