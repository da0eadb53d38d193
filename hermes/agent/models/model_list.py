"""List of the models that an endpoint serves, with window and prices where the endpoint tells them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes.agent.models.endpoint_model import authorization
from hermes.agent.models.failure import malformed
from hermes.domain.provider import ModelFacts, Provider, WireProtocol
from hermes.domain.turn.usage import Price
from hermes.domain.values import dataclass

if TYPE_CHECKING:
    from hermes.agent.models.openai_endpoint import OpenaiEndpoint

TIMEOUT_S = 20.0
_MILLION = 1_000_000
_WINDOWS = ("context_length", "context_window", "max_context_length", "max_model_len")  # names that endpoints use


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    name: str
    facts: ModelFacts


async def list_models(provider: Provider, *, base_url: str, key: str, api_version: str = "") -> list[ListedModel]:
    """Ask the endpoint for its models. Raises ModelError."""
    from hermes.agent.models.protocols.messages_wire import VERSION  # noqa: PLC0415 - seldom asked

    endpoint = await asyncio.to_thread(_endpoint, base_url, api_version)
    version = {"anthropic-version": VERSION} if provider.protocol is WireProtocol.MESSAGES else {}
    try:
        answer = await endpoint.listed({**version, **authorization(key, provider.key_header)}, secret=key)
    finally:
        await endpoint.close()
    return listed(provider, answer)


def _endpoint(base_url: str, api_version: str) -> OpenaiEndpoint:
    """Import the package and make a client. Slow: call it in a thread."""
    from hermes.agent.models.openai_endpoint import OpenaiEndpoint  # noqa: PLC0415

    return OpenaiEndpoint(
        base_url=base_url, connect_timeout_s=TIMEOUT_S, idle_timeout_s=TIMEOUT_S, api_version=api_version
    )


def listed(provider: Provider, answer: object) -> list[ListedModel]:
    """Return the models of an answer. What the endpoint tells counts before what is known."""
    entries = answer.get("data") if isinstance(answer, dict) else answer
    if not isinstance(entries, list):
        raise malformed("the list of models cannot be read")
    found = [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
    models = (ListedModel(name=_name(entry), facts=_facts(provider, entry)) for entry in found)
    return sorted(models, key=lambda model: model.name)


def _name(entry: Mapping[str, Any]) -> str:
    return str(entry["id"]).removeprefix("models/")  # Gemini's


def _facts(provider: Provider, entry: Mapping[str, Any]) -> ModelFacts:
    known = provider.facts(_name(entry))
    window = next((entry[name] for name in _WINDOWS if isinstance(entry.get(name), int)), 0)
    return ModelFacts(
        context_window=window or known.context_window,
        max_output=known.max_output,
        price=_price(entry.get("pricing")) or known.price,
        vision=known.vision,
        reasoning=known.reasoning,
    )


def _price(pricing: object) -> Price | None:
    """Return OpenRouter's prices, which are per token and written as text."""
    if not isinstance(pricing, dict):
        return None
    try:
        prompt, output = float(pricing["prompt"]) * _MILLION, float(pricing["completion"]) * _MILLION
        cached = float(pricing["input_cache_read"]) * _MILLION if pricing.get("input_cache_read") else None
    except (KeyError, TypeError, ValueError):
        return None
    return Price(input=prompt, cached_input=cached, output=output) if prompt >= 0 and output >= 0 else None
