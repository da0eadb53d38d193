"""Every wrong field of a chat request has its own clear refusal."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.adapters.openai_api.chat_request import parse_chat_request
from hermes.domain.errors import BadInputError
from tests.adapters.conftest import ask

USER = {"role": "user", "content": "Hi"}


def messages(*messages: Any) -> dict[str, Any]:
    return ask(messages=list(messages))


def calling(**call: Any) -> dict[str, Any]:
    return messages({"role": "assistant", "content": None, "tool_calls": [call]}, USER)


@pytest.mark.parametrize(
    ("body", "param", "says"),
    [
        ([], None, "must be a JSON object"),
        (None, None, "must be a JSON object"),
        ({"messages": [USER]}, "model", "model is missing"),
        (ask(model=""), "model", "at least 1 character"),
        (ask(model=7), "model", "string"),
        (ask(messages=None), "messages", "a list of 1 to 2000 items"),
        (ask(messages=[]), "messages", "a list of 1 to 2000 items"),
        (ask(messages="Hi"), "messages", "list"),
        (ask(messages=[USER] * 2_001), "messages", "a list of 1 to 2000 items"),
        (messages("Hi"), "messages[0]", "must be an object"),
        (messages({"role": "root", "content": "Hi"}), "messages[0].role", "system, developer, user, assistant, tool"),
        (messages({"role": ["user"], "content": "Hi"}), "messages[0].role", "system, developer"),
        (messages({"content": "Hi"}), "messages[0].role", "role is missing"),
        (messages(USER, {"role": "assistant", "content": "Hi"}), "messages[1].role", "must have the role user"),
        (messages({"role": "user"}), "messages[0].content", "content is missing"),
        (messages({"role": "user", "content": 5}), "messages[0].content", "a string without NUL or a list"),
        (messages({"role": "user", "content": ""}), "messages[0].content", "empty"),
        (messages({"role": "user", "content": []}), "messages[0].content", "empty"),
        (messages({"role": "user", "content": ["Hi"]}), "messages[0].content[0]", "an object"),
        (
            messages({"role": "user", "content": [{"type": "video"}]}),
            "messages[0].content[0].type",
            "text, refusal, image_url, file or input_audio",
        ),
        (
            messages({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}),
            "messages[0].content[0].image_url.url",
            "is missing",
        ),
        (messages({"role": "user", "content": [{"type": "text"}]}), "messages[0].content[0].text", "string"),
        (messages({"role": "tool", "content": "x"}, USER), "messages[0].tool_call_id", "is missing"),
        (messages(USER | {"name": 1}), "messages[0].name", "string"),
        (messages({"role": "assistant", "tool_calls": "x"}, USER), "messages[0].tool_calls", "list"),
        (calling(id="1"), "messages[0].tool_calls[0].function", "an object"),
        (calling(id="", function={}), "messages[0].tool_calls[0].id", "at least 1 character"),
        (
            calling(id="1", function={"name": "", "arguments": ""}),
            "messages[0].tool_calls[0].function.name",
            "at least 1 character",
        ),
        (calling(id="1", function={"name": "x"}), "messages[0].tool_calls[0].function.arguments", "string"),
        (ask(n=10**9), "n", "n must be 1"),
        (ask(n=0), "n", "n must be 1"),
        (ask(n=True), "n", "n must be 1"),
        (ask(stream="yes"), "stream", "true or false"),
        (ask(stream=1), "stream", "true or false"),
        (ask(stream_options=[]), "stream_options", "object"),
        (ask(stream_options={"include_usage": 1}), "stream_options.include_usage", "true or false"),
        (ask(temperature=-0.1), "temperature", "from 0 to 2"),
        (ask(temperature=2.1), "temperature", "from 0 to 2"),
        (ask(temperature=True), "temperature", "number"),
        (ask(temperature="hot"), "temperature", "number"),
        (ask(top_p=1.5), "top_p", "from 0 to 1"),
        (ask(max_tokens=-1), "max_tokens", "whole number from 1"),
        (ask(max_tokens=0), "max_tokens", "whole number from 1"),
        (ask(max_tokens=2**31), "max_tokens", "2147483647"),
        (ask(max_tokens=1.5), "max_tokens", "whole number"),
        (ask(max_completion_tokens="9"), "max_completion_tokens", "whole number"),
        (ask(seed=2**63), "seed", "whole number"),
        (ask(presence_penalty=3), "presence_penalty", "from -2 to 2"),
        (ask(frequency_penalty=-3), "frequency_penalty", "from -2 to 2"),
        (ask(stop=["a"] * 5), "stop", "0 to 4"),
        (ask(stop=[1]), "stop[0]", "string"),
        (ask(response_format="json"), "response_format", "object"),
        (ask(response_format={"type": "xml"}), "response_format.type", "text, json_object or json_schema"),
        (ask(user=5), "user", "string"),
        (ask(user="a\0b"), "user", "NUL"),
        (ask("a\0b"), "messages[0].content", "NUL"),
        (ask(audio={}), "audio", "not supported"),
        (ask(modalities=["audio"]), "modalities[0]", "text"),
        (ask(logprobs=True), "logprobs", "not available"),
        (ask(metadata={"a": 1}), "metadata", "16 strings"),
        (ask(reasoning_effort="huge"), "reasoning_effort", "minimal"),
    ],
)
def test_each_wrong_field_is_named(body: Any, param: str | None, says: str) -> None:
    with pytest.raises(BadInputError) as caught:
        parse_chat_request(body)
    assert caught.value.param == param
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["\\u0000", "\\\\u0000", "😀", "\u202e right to left", "\u200b", "x" * 2**20, "\U0001f600" * 10_000, "\x7f\x01"],
)
def test_strange_but_sound_text_is_taken_as_it_is(text: str) -> None:
    (message,) = parse_chat_request(ask(text)).given.encoded_new
    assert json.loads(message) == {"role": "user", "content": text}


def test_null_means_not_given() -> None:
    nothing: dict[str, Any] = dict.fromkeys(("n", "stream", "stream_options", "temperature", "stop", "user", "tools"))
    request = parse_chat_request(ask(**nothing))
    assert request.options == b"{}"
    assert not request.stream
    assert not request.include_usage


def test_options_are_passed_on_and_fields_without_effect_are_reported() -> None:
    given: dict[str, Any] = {
        "reasoning_effort": "low",
        "logit_bias": {"5": 1},
        "prediction": {"type": "content"},
        "stop": [],
    }
    request = parse_chat_request(ask(**given, metadata={"a": "b"}, store=False, service_tier="flex", wish=1))
    options = json.loads(request.options)
    assert options.pop("hermes") == {"metadata": {"a": "b"}}
    assert options == {name: value for name, value in given.items() if value != []}
    assert "service_tier, store" in request.notice
    assert "wish" in request.notice


def test_older_forms_and_empty_answers_in_a_history_are_taken() -> None:
    call = {"name": "clock", "arguments": "{}"}
    request = parse_chat_request(
        messages(
            USER,
            {"role": "assistant", "content": None, "function_call": call},
            {"role": "function", "name": "clock", "content": "noon"},
            {"role": "assistant", "content": None},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
            USER,
        )
    )
    _, asks, result, empty, refusal = request.given.history
    assert asks["tool_calls"][0]["id"] == result["tool_call_id"]
    assert (empty["content"], refusal["content"]) == ("", "No.")


_FIELDS = ("model", "messages", "n", "stream", "stream_options", "temperature", "stop", "response_format", "seed")
_PARTS = ("role", "content", "type", "text", "tool_calls", "function", "include_usage")
_anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(("user", "text", "assistant")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_PARTS), inner),
)


@given(st.dictionaries(st.sampled_from(_FIELDS), _anything) | _anything)
def test_no_body_does_anything_but_parse_or_be_refused(body: Any) -> None:
    with contextlib.suppress(BadInputError):
        parse_chat_request(body)
