from __future__ import annotations

import pytest

from hermes.agent.models.model_list import list_models, listed
from hermes.config.providers import PROVIDERS
from hermes.domain.errors import ModelError
from hermes.domain.ids import SessionId
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.turn_failure import FailureKind
from hermes.domain.turn.usage import Price
from hermes.ports.agent import ModelRequest
from tests.agent.harness import chat_model, heard
from tests.support.model_server import ModelServer, error

OPENROUTER = {
    "id": "anthropic/claude-x",
    "context_length": 200_000,
    "pricing": {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003"},
}


async def test_the_endpoints_own_list_is_asked_for() -> None:
    async with ModelServer() as server:
        server.models = [{"id": "b", "max_model_len": 4096}, {"id": "a"}, "broken", {}]  # type: ignore[list-item]
        found = await list_models(PROVIDERS["vllm"], base_url=server.base_url, key="")
    assert [(model.name, model.facts.context_window) for model in found] == [("a", 0), ("b", 4096)]


async def test_a_missing_list_is_a_model_error() -> None:
    with pytest.raises(ModelError):
        await list_models(PROVIDERS["vllm"], base_url="http://127.0.0.1:1/v1", key="")


def test_prices_of_the_endpoint_and_known_ones_are_listed() -> None:
    (model,) = listed(PROVIDERS["openrouter"], {"data": [OPENROUTER]})
    assert model.facts.price is not None
    assert model.facts.price.input == pytest.approx(3.0)
    assert model.facts.price.cached_input == pytest.approx(0.3)
    (known,) = listed(PROVIDERS["openai"], {"data": [{"id": "gpt-4o-2024-08-06"}]})
    assert (known.facts.context_window, known.facts.price) == (
        128_000,
        Price(input=2.5, cached_input=1.25, output=10.0),
    )
    (gemini,) = listed(PROVIDERS["gemini"], {"data": [{"id": "models/gemini-2.5-pro"}]})
    assert (gemini.name, gemini.facts.context_window) == ("gemini-2.5-pro", 1_048_576)


async def test_an_unknown_model_is_answered_with_similar_names() -> None:
    async with ModelServer() as server:
        server.models = [{"id": "gpt-4o"}, {"id": "gpt-4o-mini"}, {"id": "whisper-1"}]
        server.script(error(404, code="model_not_found", message="no such model"))
        model = chat_model(server.base_url, name="gpt4o")
        message = EncodedMessage(b'{"role":"user","content":"hi"}')
        with pytest.raises(ModelError) as caught:
            await heard(model, ModelRequest(session=SessionId("s"), messages=(message,)))
        await model.close()
    assert caught.value.failure.kind is FailureKind.BAD_REQUEST
    assert "gpt-4o" in caught.value.failure.message
    assert "whisper" not in caught.value.failure.message
