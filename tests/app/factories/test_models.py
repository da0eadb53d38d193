from __future__ import annotations

from typing import Any

import pytest

from hermes.agent.models.model_set import ModelChoice
from hermes.app.factories.models import choice_of, make_models, terms_of
from hermes.config.model_settings import AuxiliaryConfig, ModelConfig
from hermes.config.settings import Config
from hermes.domain.errors import ConfigError
from hermes.domain.turn.usage import Price

KEYS = {"ANTHROPIC_API_KEY": "sk-a", "GROQ_API_KEY": "sk-g", "OWN": "sk-o"}


def configured(**changes: Any) -> Config:
    fields: dict[str, Any] = {"provider": "anthropic", "name": "claude-sonnet-4-5"}
    return Config(model=ModelConfig(**(fields | changes)))


def test_fallbacks_are_of_any_provider_address_or_alias() -> None:
    fallbacks = ("groq:llama", "fast", "claude-haiku-4-5", "m@http://host/v1#OWN", "offline")
    config = configured(fallbacks=fallbacks, aliases=("fast=ollama:llama3:8b",))
    chain = make_models(config, KEYS).chain
    assert [(model.provider, model.name) for model in chain] == [
        ("anthropic", "claude-sonnet-4-5"),
        ("groq", "llama"),
        ("ollama", "llama3:8b"),
        ("anthropic", "claude-haiku-4-5"),
        ("custom", "m"),
        ("offline", "offline"),
    ]
    assert chain[4].endpoint == "http://host/v1"


def test_a_chosen_model_of_another_provider_comes_before_the_fallbacks() -> None:
    models = make_models(configured(fallbacks=("offline",)), KEYS)
    assert models.chain_for(ModelChoice(model="claude-opus-4-5")) is models.chain
    chosen = models.chain_for(ModelChoice(provider="groq", model="llama"))
    assert [model.provider for model in chosen] == ["groq", "offline"]
    assert models.chain_for(ModelChoice(provider="groq", model="other"))[0] is chosen[0]


@pytest.mark.parametrize(
    "config",
    [
        configured(fallbacks=("mistral:large",)),
        configured(chats=("telegram:-1=mistral:large",)),
        Config(model=configured().model, auxiliary=AuxiliaryConfig(vision="mistral:pixtral")),
    ],
)
def test_a_missing_key_of_another_provider_is_reported_at_the_start(config: Config) -> None:
    with pytest.raises(ConfigError, match="MISTRAL_API_KEY"):
        make_models(config, KEYS)


def test_only_azure_has_versions() -> None:
    model = ModelConfig(provider="groq", name="m", api_key_env="", api_version="2024-10-21")
    with pytest.raises(ConfigError, match=r"model\.api_version"):
        make_models(Config(model=model), {})


def test_a_provider_without_an_address_cannot_be_chosen_by_name() -> None:
    with pytest.raises(ConfigError, match=r"model\.base_url"):
        make_models(configured(), KEYS).chain_for(ModelChoice(provider="azure", model="gpt-4o"))


def test_each_model_has_its_own_terms() -> None:
    config = configured(prices=("groq:llama=0.5/1",), price_input=9.0)
    assert terms_of(config, "anthropic", "claude-sonnet-4-5").price.input == 9.0
    assert terms_of(config, "anthropic", "claude-haiku-4-5").price.input == 1.0
    assert terms_of(config, "groq", "llama").price == Price(input=0.5, output=1.0)
    assert terms_of(config, "groq", "unheard-of").price.input == 9.0
    assert terms_of(config, "ollama", "unheard-of").price == Price()
    assert terms_of(config, "openai", "gpt-4.1").context_window == 1_047_576


def test_a_chat_has_its_model_unless_the_conversation_chose_one() -> None:
    model = configured(chats=("telegram:-100=fast", "slack:C1=gpt:x"), aliases=("fast=groq:llama",)).model
    assert choice_of(model.for_chat("telegram:-100"), model) == ModelChoice(provider="groq", model="llama")
    assert choice_of(model.for_chat("slack:C1"), model) == ModelChoice(model="gpt:x")
    assert choice_of(model.for_chat("telegram:-200"), model) == ModelChoice()
