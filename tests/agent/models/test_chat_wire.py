from __future__ import annotations

import json
from typing import Any

import pytest

from hermes.agent.chat_message import encode
from hermes.agent.models.protocols.chat_wire import ChatWire, effort_fields
from hermes.config.providers import PROVIDERS
from hermes.domain.ids import SessionId
from hermes.domain.provider import Provider, split_choice
from hermes.domain.turn.reasoning import Reasoning, fields_of, reasoning_of, without_reasoning
from hermes.ports.agent import ModelRequest

DETAIL = {"type": "reasoning.text", "text": "hm", "index": 0}
LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh")


def sent(provider: Provider, *messages: dict[str, Any], model: str = "m", **changes: Any) -> dict[str, Any]:
    request = ModelRequest(session=SessionId("s"), messages=[encode(each) for each in messages], **changes)
    body: dict[str, Any] = json.loads(ChatWire(provider).body(request, model))
    return body


def thinking(provider: str, model: str = "m") -> dict[str, Any]:
    reasoning = Reasoning(text="hm", provider=provider, model=model, items=(DETAIL,))
    return {"role": "assistant", "content": 'a "quoted" ,\\"hermes_reasoning\\": text', **fields_of(reasoning)}


@pytest.mark.parametrize(
    ("provider", "level", "fields"),
    [
        ("openai", "xhigh", {"reasoning_effort": "xhigh"}),
        ("openai", "", {}),
        ("openrouter", "high", {"reasoning": {"effort": "high"}}),
        ("openrouter", "none", {"reasoning": {"enabled": False}}),
        ("gemini", "xhigh", {"reasoning_effort": "high"}),
        ("zai", "none", {"thinking": {"type": "disabled"}}),
        ("zai", "low", {"thinking": {"type": "enabled"}}),
        ("deepseek", "none", {"thinking": {"type": "disabled"}}),
        ("deepseek", "medium", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        ("groq", "minimal", {"reasoning_effort": "low"}),
        ("mistral", "high", {}),
    ],
)
def test_effort_levels_are_mapped_for_each_provider(provider: str, level: str, fields: dict[str, Any]) -> None:
    assert effort_fields(PROVIDERS[provider], level) == fields
    body = sent(PROVIDERS[provider], {"role": "user", "content": "hi"}, reasoning=level)
    assert {name: value for name, value in body.items() if name in ("reasoning", "reasoning_effort", "thinking")} == (
        fields
    )


@pytest.mark.parametrize(
    ("provider", "extra"),
    [
        ("openai", {}),
        ("mistral", {}),
        ("custom", {}),
        ("deepseek", {"reasoning_content": "hm"}),
        ("kimi", {"reasoning_content": "hm"}),
        ("openrouter", {"reasoning_details": [DETAIL]}),
    ],
)
def test_reasoning_goes_back_only_where_the_provider_wants_it(provider: str, extra: dict[str, Any]) -> None:
    own = thinking(provider)
    bare = {"role": "assistant", "content": own["content"]}
    body = sent(PROVIDERS[provider], own, thinking("another"), thinking(provider, model="other"))
    assert body["messages"] == [{**bare, **extra}, bare, bare]


def test_stored_reasoning_can_be_read_and_cut_off() -> None:
    reasoning = Reasoning(text='the "why"', provider="p", model="m", items=(DETAIL,))
    plain = {"role": "assistant", "content": "x"}
    message = encode({**plain, **fields_of(reasoning)})
    assert reasoning_of(message) == reasoning
    assert without_reasoning(message) == encode(plain)
    assert without_reasoning(encode(plain)) == encode(plain)
    assert not reasoning_of(encode(plain))
    assert encode({**plain, **fields_of(Reasoning(provider="p", model="m"))}) == encode(plain)


def test_a_choice_names_a_provider_only_if_there_is_one() -> None:
    assert split_choice("anthropic:claude-x", PROVIDERS) == ("anthropic", "claude-x")
    assert split_choice("ollama:llama3:8b", PROVIDERS) == ("ollama", "llama3:8b")
    assert split_choice("llama3:8b", PROVIDERS) == ("", "llama3:8b")
    assert split_choice("deepseek/deepseek-r1:free", PROVIDERS) == ("", "deepseek/deepseek-r1:free")


def test_each_provider_is_complete() -> None:
    for name, provider in PROVIDERS.items():
        assert provider.name == name
        assert provider.title
        assert name in ("azure", "custom") or provider.base_url.startswith(("https://", "http://127.0.0.1:"))
        assert not provider.base_url.endswith("/")
        for level in LEVELS:
            effort_fields(provider, level)
