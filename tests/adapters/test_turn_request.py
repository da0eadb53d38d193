"""Bodies of responses and runs become the same messages that a chat would bring."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes.adapters.openai_api.turns.turn_request import TurnRequest, read_response, turn_request
from hermes.domain.errors import BadInputError


def parse_turn_request(body: Any, stored: Any = None) -> TurnRequest:
    return turn_request(read_response(body), body, "hermes", stored or {})


def parsed(**body: Any) -> list[Any]:
    given = parse_turn_request(body).given
    return [json.loads(message) for message in (*given.encoded_history, *given.encoded_new)]


def test_a_string_is_what_the_user_says() -> None:
    assert parsed(input="Hi") == [{"role": "user", "content": "Hi"}]


def test_input_items_become_messages_and_parallel_calls_stay_together() -> None:
    call = {"type": "function_call", "name": "clock", "arguments": "{}"}
    items = [
        {"role": "developer", "content": "be brief"},
        {"type": "reasoning", "summary": []},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "the time?"}]},
        {**call, "call_id": "a"},
        {**call, "call_id": "b"},
        {"type": "function_call_output", "call_id": "a", "output": "noon"},
        {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "12:00"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Noon.", "annotations": []}]},
        {"role": "user", "content": "Thanks"},
    ]
    assert [message["role"] for message in parsed(input=items)] == [
        *("user", "assistant", "tool", "tool", "assistant", "user"),
    ]
    assert [call["id"] for call in parsed(input=items)[1]["tool_calls"]] == ["a", "b"]
    assert parsed(input=items)[3] == {"role": "tool", "tool_call_id": "b", "content": "12:00"}


def test_clients_may_send_back_what_they_received() -> None:
    server_call = {"type": "mcp_call", "id": "mcp_1", "server_label": "hermes", "name": "ls", "arguments": "{}"}
    failed = {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "no such file"}]}
    items = [
        {"role": "user", "content": "look"},
        {"type": "mcp_list_tools", "id": "l", "server_label": "hermes", "tools": []},
        {**server_call, "output": "a file", "error": None},
        {**server_call, "output": None, "error": failed},
        {**server_call, "output": None, "error": {"content": [{"text": 7}, {}]}},
        {"type": "message", "role": "assistant", "content": None},
        {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I will not."}]},
        {"role": "user", "content": "go on"},
    ]
    _, call, result, _, error, _, unknown, empty, refusal, _ = parsed(input=items)
    assert call["tool_calls"][0]["id"] == result["tool_call_id"]
    assert (result["content"], error["content"]) == ("a file", "no such file")
    assert unknown["content"] == "The call has no recorded result."
    assert (empty["content"], refusal["content"]) == ("", "I will not.")


def test_references_to_stored_items_are_resolved_and_unknown_ones_passed_over() -> None:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}
    items = [{"type": "item_reference", "id": name} for name in ("a", "b")] + [{"role": "user", "content": "Hi"}]
    given = parse_turn_request({"input": items}, {"a": said}).given
    assert [message["content"] for message in (*given.history, *given.new)] == ["Hello", "Hi"]


def test_instructions_belong_to_the_turn_and_not_to_its_messages() -> None:
    request = parse_turn_request({"input": "Hi", "instructions": "Be brief."})
    assert [message["role"] for message in request.given.new] == ["user"]
    assert json.loads(request.given.instructions) == {"role": "system", "content": "Be brief."}
    assert json.loads(request.options)["hermes"]["instructions"] == "Be brief."


def test_options_use_chat_names_and_kept_values_are_separate() -> None:
    shape = {"type": "json_schema", "name": "n", "schema": {"type": "object"}}
    request = parse_turn_request(
        {"input": "Hi", "max_output_tokens": 9, "temperature": 1, "text": {"format": shape}, "metadata": {"a": "b"}}
    )
    assert json.loads(request.options) == {
        "temperature": 1,
        "max_completion_tokens": 9,
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
        "hermes": {"model": "hermes", "metadata": {"a": "b"}, "store": True},
    }


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "input"),
        ([], None),
        ({"input": []}, "input"),
        ({"input": 7}, "input"),
        ({"input": ""}, "input"),
        ({"input": [7]}, "input[0]"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"),
        ({"input": [{"type": "computer_call", "id": "x"}]}, "input[0].type"),
        ({"input": "x", "include": "all"}, "include"),
        ({"input": [{"role": "user", "content": [{"type": "video"}]}]}, "input[0].content[0].type"),
        ({"input": [{"role": "assistant", "content": "x"}]}, "input[0]"),
        ({"input": [{"role": "user", "content": ""}]}, "input[0]"),
        ({"input": "x", "metadata": {"a": 1}}, "metadata"),
        ({"input": "x", "metadata": {str(n): "" for n in range(17)}}, "metadata"),
        ({"input": "x", "session_id": "../x"}, "session_id"),
        ({"input": "x", "session_id": 7}, "session_id"),
        ({"input": "x", "session_id": "a", "conversation": "b"}, "X-Hermes-Session-Id"),
        ({"input": "x", "store": "no"}, "store"),
        ({"input": "x", "prompt": {"id": "p"}}, "prompt"),
        ({"input": "x", "top_logprobs": 2}, "top_logprobs"),
        ({"input": "x", "text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"input": "x", "max_output_tokens": 0}, "max_output_tokens"),
        ({"input": "x", "previous_response_id": ""}, "previous_response_id"),
        ({"input": "a\0b"}, "input"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_name(body: Any, param: str | None) -> None:
    with pytest.raises(BadInputError) as refused:
        parse_turn_request(body)
    assert refused.value.param == param


def test_unknown_fields_and_hints_that_have_no_effect_are_reported() -> None:
    notice = parse_turn_request({"input": "Hi", "wish": 1, "truncation": "disabled"}).notice
    assert "wish" in notice
    assert "truncation" in notice
