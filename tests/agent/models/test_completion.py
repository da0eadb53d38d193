from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.models.protocols.completion import ANSWER_MAX_BYTES, CALLS_MAX, StreamedCompletion, request_body
from hermes.domain.errors import ModelError
from hermes.domain.ids import SessionId
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.turn_failure import FailureKind
from hermes.domain.turn.usage import Usage
from hermes.ports.agent import ModelRequest


def chunk(finish: str | None = None, **delta: Any) -> bytes:
    return json.dumps({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}).encode()


def kind_of(data: bytes) -> FailureKind:
    with pytest.raises(ModelError) as caught:
        StreamedCompletion(model="m").add(data)
    return caught.value.failure.kind


def test_text_finish_reason_usage_and_model_are_put_together() -> None:
    completion = StreamedCompletion(model="asked")
    texts = [completion.add(chunk(content="a")), completion.add(chunk(content="b")), completion.add(chunk("stop"))]
    completion.add(b'{"choices": [], "model": "given", "usage": {"prompt_tokens": 3, "completion_tokens": 2}}')
    completion.add(b"[DONE]")
    assert texts == ["a", "b", ""]
    done = completion.done()
    assert (done.finish_reason, done.model, done.usage) == (
        "stop",
        "given",
        Usage(prompt_tokens=3, completion_tokens=2),
    )


def test_reasoning_content_is_no_part_of_the_answer() -> None:
    completion = StreamedCompletion(model="m")
    assert completion.add(chunk(reasoning_content="let me see")) == ""
    assert completion.add(chunk(reasoning_content="hm", content="yes")) == "yes"


def test_without_a_finish_reason_it_is_not_an_answer() -> None:
    completion = StreamedCompletion(model="m")
    completion.add(chunk(content="nearly"))
    completion.add(b"[DONE]")
    with pytest.raises(ModelError, match="incomplete"):
        completion.done()


def test_a_content_filter_is_a_matter_of_policy() -> None:
    completion = StreamedCompletion(model="m")
    completion.add(chunk("content_filter"))
    with pytest.raises(ModelError) as caught:
        completion.done()
    assert caught.value.failure.kind == FailureKind.POLICY


def test_tool_calls_are_collected_from_their_pieces() -> None:
    completion = StreamedCompletion(model="m")
    completion.add(chunk(tool_calls=[{"index": 0, "id": "c1", "function": {"name": "look", "arguments": ""}}]))
    completion.add(chunk(tool_calls=[{"index": 1, "id": "c2", "function": {"name": "see", "arguments": "{}"}}]))
    completion.add(chunk(tool_calls=[{"index": 0, "function": {"arguments": '{"at":'}}]))
    completion.add(chunk("tool_calls", tool_calls=[{"index": 0, "function": {"arguments": "1}"}}]))
    assert completion.done().tool_calls == (
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":1}'}},
        {"id": "c2", "type": "function", "function": {"name": "see", "arguments": "{}"}},
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"null?",
        b"[]",
        b'"x"',
        b"\xff",
        b'{"choices": {}}',
        b'{"choices": [5]}',
        b'{"choices": [{"delta": "x"}]}',
        b'{"choices": [{"delta": {"content": 5}}]}',
        b'{"choices": [{"delta": {"tool_calls": "x"}}]}',
        b'{"choices": [{"delta": {"tool_calls": [{"index": "x"}]}}]}',
        b'{"usage": 5}',
        b"[" * 100_000,
        b'{"choices": [{"delta": {"content": "\xed\xa0\x80"}}]}',  # a surrogate as UTF-8, which is none
    ],
)
def test_what_is_not_a_chunk_is_a_malformed_reply(data: bytes) -> None:
    assert kind_of(data) == FailureKind.MALFORMED_REPLY


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text() | st.floats(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["choices", "delta", "content", "index", "usage", "tool_calls", "function", "error"]),
                inner,
            )
        ),
    )
)
def test_no_json_at_all_breaks_it(payload: object) -> None:
    completion = StreamedCompletion(model="m")
    try:
        completion.add(json.dumps(payload).encode()).encode()
        completion.done()
    except ModelError:
        pass


def test_an_answer_without_end_is_stopped() -> None:
    completion = StreamedCompletion(model="m")
    half = chunk(content="x" * (ANSWER_MAX_BYTES // 2))
    completion.add(half)
    completion.add(half)
    with pytest.raises(ModelError, match="no end"):
        completion.add(chunk(content="x"))


def test_a_character_in_two_halves_becomes_whole_and_a_lone_half_storable() -> None:
    completion = StreamedCompletion(model="m")
    escaped = [
        rb'{"choices":[{"delta":{"content":"%s"}}]}' % half for half in (rb"a\ud83d", rb"\ude00b", rb"\ude00!")
    ]
    assert [completion.add(data) for data in escaped] == ["a", "😀b", "�!"]


def test_strange_counts_are_no_counts() -> None:
    completion = StreamedCompletion(model="m")
    completion.add(chunk("stop"))
    completion.add(b'{"usage": {"prompt_tokens": 100000000000000000000000, "completion_tokens": -1}}')
    assert completion.done().usage == Usage()


def test_only_the_first_choice_counts() -> None:
    completion = StreamedCompletion(model="m")
    assert completion.add(b'{"choices":[{"index":1,"delta":{"content":"other"},"finish_reason":"stop"}]}') == ""
    assert not completion.over


@pytest.mark.parametrize("options", [b"{}", b" { } ", b'{"temperature":0.5}', b'{"model":"mine","stream":false}'])
def test_a_request_holds_the_messages_as_they_are_and_our_settings_last(options: bytes) -> None:
    messages = [
        EncodedMessage(b'{ "role":"user", "content":"\\u0061", "x":1.0e0 }'),
        EncodedMessage(b'{"role":"system"}'),
    ]
    body = request_body(ModelRequest(session=SessionId("s"), messages=messages, options=options), b'"model":"m"')
    assert messages[0] + b"," + messages[1] in body
    parsed = json.loads(body)
    assert parsed["messages"] == [json.loads(message) for message in messages]
    assert (parsed["model"], parsed["stream"], parsed["stream_options"]) == ("m", True, {"include_usage": True})
    assert parsed.get("temperature") == json.loads(options).get("temperature")


@pytest.mark.parametrize("indexes", [(0, 0, 0), (None, None, None), (0, 1, 2)])
def test_a_new_id_is_a_new_call_whatever_its_index(indexes: tuple[int | None, ...]) -> None:
    completion = StreamedCompletion(model="m")
    for name, index in zip("abc", indexes, strict=True):
        completion.add(chunk(tool_calls=[{"index": index, "id": name, "function": {"name": name, "arguments": "{"}}]))
        completion.add(chunk(tool_calls=[{"index": index, "id": name, "function": {"arguments": "}"}}]))
    completion.add(chunk("tool_calls"))
    made = [(call["id"], call["function"]) for call in completion.done().tool_calls]
    assert made == [(name, {"name": name, "arguments": "{}"}) for name in "abc"]


@pytest.mark.parametrize("finish", ["error", "abort", "tool_calls"])
def test_an_end_that_is_none_is_a_malformed_reply(finish: str) -> None:
    completion = StreamedCompletion(model="m")
    completion.add(chunk(finish, content="half an answer"))
    with pytest.raises(ModelError) as caught:
        completion.done()
    assert caught.value.failure.kind == FailureKind.MALFORMED_REPLY


def test_calls_without_end_are_stopped() -> None:
    completion = StreamedCompletion(model="m")
    completion.add(chunk(tool_calls=[{"index": number} for number in range(CALLS_MAX)]))
    with pytest.raises(ModelError, match="tool calls"):
        completion.add(chunk(tool_calls=[{"index": CALLS_MAX}]))


def test_what_a_surface_keeps_with_a_turn_is_no_models_business() -> None:
    options = b'{"temperature":1,"hermes":{"metadata":{"k":"v"}}}'
    body = request_body(ModelRequest(session=SessionId("s"), messages=(), options=options), b'"model":"m"')
    assert json.loads(body).keys() == {"temperature", "messages", "model", "stream", "stream_options"}


def test_the_messages_of_a_request_are_copied_once() -> None:
    messages = tuple(EncodedMessage(b'{"role":"user","content":"%s"}' % (b"x" * 200)) for _ in range(10_000))
    request = ModelRequest(session=SessionId("s"), messages=messages)
    tracemalloc.start()
    try:
        body = request_body(request, b'"model":"m"')
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(json.loads(body)["messages"]) == len(messages)
    assert peak < 1.5 * len(body)


def test_reasoning_is_kept_apart_in_every_field_that_endpoints_use() -> None:
    completion = StreamedCompletion(model="m")
    thoughts = []
    for delta in (
        {"reasoning_content": "a"},
        {"reasoning": "b", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "b"}]},
        {"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "c", "signature": "s"}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "d"}]},
    ):
        assert completion.add(chunk(**delta)) == ""
        thoughts.append(completion.thought)
    assert completion.add(chunk("stop", content="answer", reasoning_content=None)) == "answer"
    assert completion.thought == ""
    assert thoughts == ["a", "b", "", ""]
    assert completion.done().reasoning == (
        {"type": "reasoning.text", "index": 0, "text": "bc", "signature": "s"},
        {"type": "reasoning.encrypted", "index": 1, "data": "d"},
    )


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens_details": {"cached_tokens": 5}},
        {"prompt_cache_hit_tokens": 5},
        {"cached_tokens": 5},
    ],
)
def test_cached_tokens_are_found_under_each_name(usage: dict[str, Any]) -> None:
    completion = StreamedCompletion(model="m")
    completion.add(json.dumps({"usage": {"prompt_tokens": 9, **usage}}).encode())
    completion.add(chunk("stop"))
    assert completion.done().usage == Usage(prompt_tokens=9, cached_tokens=5)
