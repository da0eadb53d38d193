"""What a request says about tools, in every format that clients use."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.adapters.openai_api.turns.tool_wish import NO_TOOLS_MODEL, read_tools
from hermes.domain.errors import BadInputError

FUNCTION = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}
TOOL = {"type": "function", "function": FUNCTION}


@pytest.mark.parametrize(
    "body", [{"tools": [TOOL]}, {"tools": [{"type": "function", **FUNCTION}]}, {"functions": [FUNCTION]}]
)
def test_every_format_becomes_that_of_chat_completions(body: dict[str, Any]) -> None:
    assert read_tools(body, "hermes").kept == {"client_tools": [TOOL]}


@pytest.mark.parametrize(
    ("choice", "passed"),
    [
        ("none", "none"),
        ("auto", "auto"),
        ("required", "required"),
        ({"type": "function", "function": {"name": "look"}}, {"type": "function", "function": {"name": "look"}}),
        ({"type": "function", "name": "look"}, {"type": "function", "function": {"name": "look"}}),
        ({"type": "allowed_tools", "mode": "required", "tools": []}, "required"),
    ],
)
def test_choices_have_one_format_for_the_model(choice: Any, passed: Any) -> None:
    assert read_tools({"tools": [TOOL], "tool_choice": choice}, "hermes").options == {"tool_choice": passed}


@pytest.mark.parametrize(
    ("body", "model", "server"),
    [
        ({}, "hermes", None),
        ({}, NO_TOOLS_MODEL, []),
        ({"hermes": {"tools": "none"}}, "hermes", []),
        ({"hermes": {"tools": ["todo"]}}, "hermes", ["todo"]),
        ({"hermes": {"tools": ["todo"]}}, NO_TOOLS_MODEL, []),
        ({"hermes": {}}, "hermes", None),
    ],
)
def test_a_request_can_limit_the_servers_tools(body: dict[str, Any], model: str, server: list[str] | None) -> None:
    assert read_tools(body, model).kept.get("server_tools") == server


def test_tools_that_a_provider_would_run_are_reported() -> None:
    wish = read_tools({"tools": [{"type": "web_search"}, {"type": "function", **FUNCTION}]}, "hermes")
    assert "web_search" in wish.notice
    assert len(wish.kept["client_tools"]) == 1


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"tools": {}}, "tools"),
        ({"tools": [7]}, "tools"),
        ({"tools": [{}]}, "tools[0].type"),
        ({"tools": [TOOL, TOOL]}, "tools"),
        ({"tools": [{"type": "function", "name": "a b"}]}, "tools[0].name"),
        ({"functions": [{"name": "x", "parameters": []}]}, "functions[0].parameters"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "name": "other"}}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": "sometimes"}, "tool_choice"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"name": []}}, "tool_choice"),
        ({"hermes": 7}, "hermes"),
        ({"hermes": {"tools": "some"}}, "hermes.tools"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_its_name(body: dict[str, Any], param: str) -> None:
    with pytest.raises(BadInputError) as refused:
        read_tools(body, "hermes")
    assert refused.value.param == param
