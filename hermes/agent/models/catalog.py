"""Creates a model from settings. Slow imports and connections wait until the first turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hermes.agent.models.endpoint_model import EndpointModel
from hermes.agent.models.key_pool import KeyPool, ProviderKey
from hermes.agent.models.transport import Transport
from hermes.domain.errors import ConfigError
from hermes.domain.provider import Provider, WireProtocol
from hermes.ports.agent import Model
from hermes.ports.given import Clock
from hermes.system.lean_aiohttp import load_certificates

if TYPE_CHECKING:
    from hermes.agent.models.endpoint import Endpoint
    from hermes.agent.models.openai_endpoint import OpenaiEndpoint
    from hermes.agent.models.protocols.wire import Wire


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
    api_version: str = "",
) -> Model:
    """Make a model of an endpoint. Missing settings are those of the provider."""
    address = base_url or provider.base_url
    _check(address, name, keys)
    protocol = protocol or provider.protocol
    opened = _over_openai if protocol is WireProtocol.RESPONSES or api_version else _over_aiohttp
    return EndpointModel(
        wire=_wire(protocol, provider, deployments=bool(api_version)),
        base_url=address,
        name=name,
        keys=KeyPool(keys, clock),
        transport=opened(address, connect_timeout_s, idle_timeout_s, api_version),
        provider=provider.name,
        key_header=provider.key_header,
    )


def _wire(protocol: WireProtocol, provider: Provider, *, deployments: bool) -> Wire:
    match protocol:
        case WireProtocol.CHAT:
            from hermes.agent.models.protocols.chat_wire import ChatWire  # noqa: PLC0415 - one of them is enough

            return ChatWire(provider, deployments=deployments)
        case WireProtocol.RESPONSES:
            from hermes.agent.models.protocols.responses_wire import ResponsesWire  # noqa: PLC0415

            return ResponsesWire(provider)
        case WireProtocol.MESSAGES:
            from hermes.agent.models.protocols.messages_wire import MessagesWire  # noqa: PLC0415

            return MessagesWire(provider)


def _over_aiohttp(
    base_url: str, connect_timeout_s: float, idle_timeout_s: float, _api_version: str
) -> Callable[[], Awaitable[Transport]]:
    async def opened() -> Transport:
        made = await asyncio.to_thread(_endpoint, urlsplit(base_url).scheme)
        return made(base_url=base_url, connect_timeout_s=connect_timeout_s, idle_timeout_s=idle_timeout_s)

    return opened


def _over_openai(
    base_url: str, connect_timeout_s: float, idle_timeout_s: float, api_version: str
) -> Callable[[], Awaitable[Transport]]:
    def made() -> Transport:
        return _openai_endpoint()(
            base_url=base_url,
            connect_timeout_s=connect_timeout_s,
            idle_timeout_s=idle_timeout_s,
            api_version=api_version,
        )

    return lambda: asyncio.to_thread(made)


def _endpoint(scheme: str) -> type[Endpoint]:
    """Import the endpoint's class, and load what its connections need. Slow: call it in a thread."""
    from hermes.agent.models.endpoint import Endpoint  # noqa: PLC0415

    if scheme == "https":
        load_certificates()
    return Endpoint


def _openai_endpoint() -> type[OpenaiEndpoint]:
    """Import the package. Slow: call it in a thread."""
    from hermes.agent.models.openai_endpoint import OpenaiEndpoint  # noqa: PLC0415

    return OpenaiEndpoint


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
