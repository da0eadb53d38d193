"""Factory of models: the configured one, its fallbacks, and others that people choose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hermes.agent.models.catalog import make_model
from hermes.agent.models.key_pool import ProviderKey
from hermes.agent.models.model_set import ModelChoice, ModelSet, ModelTerms
from hermes.agent.models.offline_model import OfflineModel
from hermes.config.log import redact
from hermes.config.model_settings import AUTO, NONE, ModelConfig
from hermes.config.providers import LOCAL, OFFLINE, PROVIDERS
from hermes.config.secret import Secret
from hermes.config.settings import Config
from hermes.domain.errors import ConfigError
from hermes.domain.provider import Provider, WireProtocol, split_choice
from hermes.domain.values import replace
from hermes.ports.agent import Model
from hermes.system.clock import wall

if TYPE_CHECKING:
    from hermes.agent.models.model_list import ListedModel


def make_models(config: Config, environ: Mapping[str, str]) -> ModelSet:
    """Make the first model, its fallbacks and those that settings name. Raises ConfigError."""
    model = config.model
    chain = (_configured(model, environ), *(_fallback(text, model, environ) for text in model.fallbacks))
    models = ModelSet(chain, lambda choice: _chosen(choice, model, environ))
    side = config.auxiliary
    sides = (side.summary, title_model(config) or "", side.vision, review_model(config) or "", side.approval)
    for text in (*sides, *model.chat_models):
        models.chain_for(choice_of(text, model))  # a missing key is reported now, not in a turn
    return models


def title_model(config: Config) -> str | None:
    """Return the model that makes titles; empty: the conversation's own; None: there are no titles."""
    title = config.auxiliary.title
    return None if title == NONE or not (title or config.model.is_remote) else title


def review_model(config: Config) -> str | None:
    """Return the model that reviews conversations; empty: the conversation's own; None: there are no reviews."""
    review = config.auxiliary.review
    return None if review == NONE or not (review or config.model.is_remote) else review


def choice_of(text: str, model: ModelConfig) -> ModelChoice:
    """Return the choice that `[PROVIDER:]MODEL` or an alias names."""
    provider, name = split_choice(model.resolved(text), PROVIDERS)
    return ModelChoice(provider=provider, model=name)


def terms_of(config: Config, provider: str, name: str) -> ModelTerms:
    """Return window and price of a model: configured, else known, else those of the configured model.

    Models of a server on this machine cost nothing unless a price is configured.
    """
    model = config.model
    if model.provider == LOCAL:
        from hermes.agent.models.local_model import CONTEXT_MAX  # noqa: PLC0415 - for this provider only

        return ModelTerms(context_window=min(model.window, CONTEXT_MAX))
    if (provider, name) == (model.provider, model.name) or model.entry is None:
        return ModelTerms(context_window=model.window, price=model.price())
    entry = PROVIDERS.get(provider) or model.entry
    facts, price = entry.facts(name), model.price_of(entry.name, name)
    is_known = price.input or price.output or entry.is_local
    return ModelTerms(
        context_window=facts.context_window or model.window,
        price=price if is_known else model.price(),  # an estimate, so that a budget still ends
    )


def _configured(model: ModelConfig, environ: Mapping[str, str]) -> Model:
    if model.provider == OFFLINE:
        return OfflineModel()
    if model.provider == LOCAL:
        from hermes.agent.models.local_model import LocalModel  # noqa: PLC0415 - for this provider only

        return LocalModel(context_window=model.window)
    assert model.entry is not None
    if model.api_version and not model.entry.versioned:
        raise ConfigError(f"model.api_version: the provider {model.provider} has no versions; remove it")
    return _endpoint(model, model.entry, model.name, base_url=model.base_url, keys=_keys(model, environ))


def _chosen(choice: ModelChoice, model: ModelConfig, environ: Mapping[str, str]) -> Model:
    """Make a model of another provider, with the key in the provider's own variable."""
    entry = PROVIDERS[choice.provider]
    if not entry.base_url:
        raise ConfigError(f"the provider {entry.name} needs model.base_url; set model.provider to it")
    if entry.key_variable and not environ.get(entry.key_variable, "").strip():
        raise ConfigError(
            f"the key of {entry.title} is missing: the environment variable {entry.key_variable} is not set",
            missing_variables=(entry.key_variable,),
        )
    own = replace(model, provider=entry.name, api_key_env=AUTO, api_key_file="", protocol=AUTO, api_version="")
    return _endpoint(own, entry, choice.model, keys=_keys(own, environ))


def _fallback(text: str, model: ModelConfig, environ: Mapping[str, str]) -> Model:
    """Parse [PROVIDER:]MODEL, MODEL@ADDRESS or MODEL@ADDRESS#VARIABLE. Missing parts are those of the first model."""
    if text == OFFLINE:
        return OfflineModel()
    name, _, rest = text.partition("@")
    address, _, variable = rest.partition("#")
    choice = choice_of(name, model)
    if choice.provider not in ("", model.provider) and not address:
        return _chosen(choice, model, environ)
    if address:  # of another endpoint: chat completions, unless a provider is named
        entry, model = PROVIDERS[choice.provider or "custom"], replace(model, protocol=AUTO, api_version="")
    else:
        entry = model.entry or PROVIDERS["openai"]
    if variable:
        keys: tuple[ProviderKey, ...] = _revealed(((variable, Secret(environ.get(variable, "").strip())),))
    else:
        keys = _keys(model, environ) if model.is_remote and not address else ()
    return _endpoint(model, entry, choice.model, base_url=address or model.base_url, keys=keys)


def _endpoint(
    model: ModelConfig, entry: Provider, name: str, *, base_url: str = "", keys: tuple[ProviderKey, ...]
) -> Model:
    return make_model(
        entry,
        name=name,
        clock=wall,
        base_url=base_url,
        protocol=None if model.protocol == AUTO else WireProtocol(model.protocol),
        keys=keys,
        connect_timeout_s=model.connect_timeout_s,
        idle_timeout_s=model.idle_timeout_s,
        api_version=model.api_version,
    )


def _keys(model: ModelConfig, environ: Mapping[str, str]) -> tuple[ProviderKey, ...]:
    return _revealed(model.api_keys(environ))


def _revealed(found: tuple[tuple[str, Secret], ...]) -> tuple[ProviderKey, ...]:
    for _, secret in found:
        redact(secret)
    return tuple(ProviderKey(value=secret.reveal(), source=source) for source, secret in found if secret.reveal())


def with_choice(model: ModelConfig, choice: ModelChoice) -> ModelConfig:
    """Return the settings for a chosen model. Another provider has its own address, protocol and key."""
    if choice.provider in ("", model.provider):
        return replace(model, name=choice.model)
    return ModelConfig(provider=choice.provider, name=choice.model, idle_timeout_s=model.idle_timeout_s)


async def live_models(model: ModelConfig, environ: Mapping[str, str]) -> list[ListedModel]:
    """Ask the endpoint of the provider for its models. Raises ConfigError and ModelError."""
    from hermes.agent.models.model_list import list_models  # noqa: PLC0415 - seldom asked

    if model.entry is None:
        raise ConfigError(f"the provider {model.provider} has no list of models")
    base_url = model.base_url or model.entry.base_url
    if not base_url:
        raise ConfigError(f"the provider {model.provider} needs model.base_url")
    keys = _keys(model, environ)
    key, version = keys[0].value if keys else "", model.api_version
    return await list_models(model.entry, base_url=base_url, key=key, api_version=version)
