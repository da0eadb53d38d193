"""Creates a model from settings. Slow imports and connections wait until the first turn."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from hermes.agent.models.endpoint_model import EndpointModel
from hermes.agent.models.key_pool import KeyPool, ProviderKey
from hermes.agent.models.protocols.chat_wire import ChatWire
from hermes.agent.models.protocols.messages_wire import MessagesWire
from hermes.agent.models.protocols.responses_model import ResponsesModel
from hermes.agent.models.protocols.wire import Wire
from hermes.domain.errors import ConfigError
from hermes.domain.provider import Provider, WireProtocol
from hermes.ports.agent import Model
from hermes.ports.given import Clock


def make_model(
    provider: Provider,
    *,
    name: str,
    clock: Clock,
    base_url: str = "",
    protocol: WireProtocol | None = None,
    keys: Sequence[ProviderKey] = (),
    connect_timeout_s: float = 10.0,
    idle_timeout_s: float = 60.0,
) -> Model:
    """Make a model of an endpoint. Missing settings are those of the provider."""
    address = base_url or provider.base_url
    _check(address, name, keys)
    pool = KeyPool(keys, clock)
    protocol = protocol or provider.protocol
    if protocol is WireProtocol.RESPONSES:
        return ResponsesModel(
            provider=provider,
            base_url=address,
            name=name,
            keys=pool,
            connect_timeout_s=connect_timeout_s,
            idle_timeout_s=idle_timeout_s,
        )
    wire: Wire = MessagesWire(provider) if protocol is WireProtocol.MESSAGES else ChatWire(provider)
    return EndpointModel(
        wire=wire,
        base_url=address,
        name=name,
        keys=pool,
        provider=provider.name,
        key_header=provider.key_header,
        connect_timeout_s=connect_timeout_s,
        idle_timeout_s=idle_timeout_s,
    )


def _check(base_url: str, name: str, keys: Sequence[ProviderKey]) -> None:
    if not name:
        raise ConfigError("model.name: set the name of the endpoint's model")
    try:
        url = urlsplit(base_url)
        usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError("model.base_url: give the complete URL, like http://127.0.0.1:11434/v1")
    if url.username is not None and keys:
        raise ConfigError("model.base_url: it has a user name, and there is an API key; remove one of them")
    if not all(key.value.isascii() and key.value.isprintable() for key in keys):
        raise ConfigError("the model's API key has characters that are not allowed in a header; copy it again")
