from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hermes.agent.chat_message import encode
from hermes.agent.models.protocols.messages_wire import thinking_fields
from hermes.config.providers import PROVIDERS
from hermes.domain.errors import ModelError
from hermes.domain.ids import SessionId
from hermes.domain.provider import WireProtocol
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.reasoning import Reasoning, fields_of
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.turn.usage import Usage
from hermes.ports.agent import Model, ModelDone, ModelReasoning, ModelRequest, ModelText
from tests.agent.harness import endpoint_model, heard
from tests.support.messages_protocol import block, complaint, message, refusal, sent, started
from tests.support.model_server import CUT, ModelServer, Reply, stream

K = FailureKind
KEY = "sk-canary-0123456789"
NAME = "claude-sonnet-4-5"
TOOL = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        server.handler = lambda body, number: message("ok")
        yield server


@pytest.fixture
async def model(server: ModelServer) -> AsyncIterator[Model]:
    model = endpoint_model(PROVIDERS["anthropic"], server.base_url, name=NAME, key=KEY)
    yield model
    await model.close()


def says(role: str, content: Any, **fields: Any) -> EncodedMessage:
    return encode({"role": role, "content": content, **fields})


def call(id_: str, **arguments: Any) -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": "look", "arguments": json.dumps(arguments)}}


def request(*messages: EncodedMessage, **changes: Any) -> ModelRequest:
    return ModelRequest(session=SessionId("s"), messages=messages or (says("user", "hi"),), **changes)


def thought(text: str, name: str = NAME, provider: str = "anthropic") -> dict[str, Any]:
    block = {"type": "thinking", "thinking": text, "signature": f"signature of {text}"}
    return fields_of(Reasoning(text=text, provider=provider, model=name, items=(block,)))


async def failure_of(model: Model, **changes: Any) -> Failure:
    with pytest.raises(ModelError) as caught:
        await heard(model, request(**changes))
    return caught.value.failure


async def test_an_answer_is_streamed_with_thinking_and_usage(server: ModelServer, model: Model) -> None:
    server.script(message("Hello there", thinking="They greet me.", prompt=5, cached=90, written=5))
    *parts, done = await heard(model, request())
    assert "".join(each.text for each in parts if isinstance(each, ModelText)) == "Hello there"
    assert "".join(each.text for each in parts if isinstance(each, ModelReasoning)) == "They greet me."
    assert done == ModelDone(
        finish_reason="stop",
        model="claude-x-1",
        usage=Usage(prompt_tokens=100, completion_tokens=7, cached_tokens=90),
        reasoning=({"type": "thinking", "thinking": "They greet me.", "signature": "signature of They greet me."},),
    )
    assert server.headers[0]["x-api-key"] == KEY
    assert "Authorization" not in server.headers[0]


async def test_prompt_tokens_at_the_end_of_the_answer_count(server: ModelServer, model: Model) -> None:
    counts = {"input_tokens": 30, "cache_read_input_tokens": 20, "output_tokens": 5}
    end = sent("message_delta", delta={"stop_reason": "end_turn"}, usage=counts)
    text = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "hi"})
    server.script(stream(started(prompt=0), *text, end, sent("message_stop")))
    done = (await heard(model, request()))[-1]
    assert isinstance(done, ModelDone)
    assert done.usage == Usage(prompt_tokens=50, completion_tokens=5, cached_tokens=20)


async def test_parallel_tool_calls_are_handed_on_and_their_results_come_back(
    server: ModelServer, model: Model
) -> None:
    server.script(message(thinking="Two.", calls=[("t1", "look", {"at": "é"}), ("t2", "look", {})]))
    done = (await heard(model, request(tools=json.dumps([TOOL]).encode())))[-1]
    assert isinstance(done, ModelDone)
    assert done.finish_reason == "tool_calls"
    assert [(each["id"], json.loads(each["function"]["arguments"])) for each in done.tool_calls] == [
        ("t1", {"at": "é"}),
        ("t2", {}),
    ]
    await heard(
        model,
        request(
            says("system", "Be kind."),
            says("user", "look"),
            says("assistant", None, tool_calls=[call("t1", at="é"), call("t2")], **thought("Two.")),
            says("tool", "a tree", tool_call_id="t1"),
            says("tool", "a house", tool_call_id="t2"),
            says("user", "and say it short"),
            tools=json.dumps([TOOL]).encode(),
            reasoning="high",
        ),
    )
    body = server.requests[-1]
    assert complaint(body, server.headers[-1]) == ""
    assert body["tools"][0] == {"name": "look", "description": "Look.", "input_schema": {"type": "object"}}
    assert [part["type"] for part in body["messages"][1]["content"]] == ["thinking", "tool_use", "tool_use"]
    assert [part["type"] for part in body["messages"][2]["content"]] == ["tool_result", "tool_result", "text"]
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 16_384}


async def test_breakpoints_mark_the_prompt_and_the_last_two_user_messages(server: ModelServer, model: Model) -> None:
    talk = [says("system", "Be kind."), says("system", "Be brief.")]
    for n in range(4):
        talk += [says("user", f"q{n}"), says("assistant", f"a{n}")]
    await heard(model, request(*talk[:-1]))
    body = server.requests[-1]
    assert ["cache_control" in part for part in body["system"]] == [False, True]
    marked = [part["text"] for each in body["messages"] for part in each["content"] if "cache_control" in part]
    assert marked == ["q2", "q3"]
    assert complaint(body, server.headers[-1]) == ""


@pytest.mark.parametrize(
    "other", [thought("mine", provider="openrouter"), thought("mine", name="claude-opus-4-5"), {}]
)
async def test_reasoning_of_another_model_is_not_sent_and_thinking_is_off_in_its_tool_loop(
    server: ModelServer, model: Model, other: dict[str, Any]
) -> None:
    talk = (
        says("user", "look"),
        says("assistant", None, tool_calls=[call("t 1/")], **other),
        says("tool", "a tree", tool_call_id="t 1/"),
    )
    await heard(model, request(*talk, reasoning="low"))
    body = server.requests[-1]
    assert complaint(body, server.headers[-1]) == ""
    assert "thinking" not in body
    assert "mine" not in json.dumps(body)
    assert body["messages"][1]["content"][0]["id"] == "t_1_"


async def test_pictures_and_options_are_converted(server: ModelServer, model: Model) -> None:
    options = {"temperature": 1.5, "top_p": 0.5, "stop": ["x"], "max_tokens": 99, "seed": 1, "user": "u"}
    content = [{"type": "text", "text": "see"}, PICTURE]
    await heard(model, request(says("user", content), options=json.dumps(options).encode()))
    body = server.requests[-1]
    assert body["messages"][0]["content"][1]["source"] == {
        "type": "base64",
        "media_type": "image/png",
        "data": "aGk=",
    }
    wanted = {"temperature": 1, "top_p": 0.5, "stop_sequences": ["x"], "max_tokens": 99}
    assert {name: body[name] for name in wanted} == wanted
    assert not {"seed", "user", "stop"} & body.keys()


async def test_odd_transcripts_are_still_valid(server: ModelServer, model: Model) -> None:
    await heard(
        model,
        request(
            says("system", "Be kind."),
            says("assistant", "I began."),
            says("user", ""),
            says("user", "hi"),
            says("system", "A note."),
            says("assistant", "   "),
            says("user", "again"),
        ),
    )
    body = server.requests[-1]
    assert complaint(body, server.headers[-1]) == ""
    assert [each["role"] for each in body["messages"]] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (refusal(400, "invalid_request_error"), K.BAD_REQUEST),
        (refusal(400, "invalid_request_error", "prompt is too long: 9 tokens > 8"), K.CONTEXT_OVERFLOW),
        (refusal(401, "authentication_error"), K.AUTH),
        (refusal(402, "billing_error"), K.BILLING),
        (refusal(403, "permission_error"), K.AUTH),
        (refusal(413, "request_too_large"), K.CONTEXT_OVERFLOW),
        (refusal(429, "rate_limit_error"), K.RATE_LIMIT),
        (refusal(500, "api_error"), K.OVERLOADED),
        (refusal(529, "overloaded_error"), K.OVERLOADED),
        (stream(started(), sent("error", error={"type": "overloaded_error", "message": "x"})), K.OVERLOADED),
        (stream(started(), sent("error", error={"type": "rate_limit_error", "message": "x"})), K.RATE_LIMIT),
        (stream(started(), CUT), K.CONNECTION),
        (stream(started()), K.MALFORMED_REPLY),
        (stream(b"data: [1]\n\n"), K.MALFORMED_REPLY),
        (stream(sent("content_block_start", content_block=1)), K.MALFORMED_REPLY),
        (message(stop="tool_use"), K.MALFORMED_REPLY),
        (message("no", stop="refusal"), K.POLICY),
    ],
)
async def test_a_fault_has_its_kind(server: ModelServer, model: Model, reply: Reply, kind: FailureKind) -> None:
    server.script(reply)
    failure = await failure_of(model)
    assert failure.kind is kind
    assert KEY not in failure.message


async def test_an_answer_cut_by_its_length_says_so(server: ModelServer, model: Model) -> None:
    server.script(message("half", stop="max_tokens"))
    done = (await heard(model, request()))[-1]
    assert isinstance(done, ModelDone)
    assert done.finish_reason == "length"


@pytest.mark.parametrize(
    ("name", "level", "fields"),
    [
        (NAME, "", {}),
        (NAME, "none", {}),
        (NAME, "low", {"thinking": {"type": "enabled", "budget_tokens": 4096}}),
        ("claude-opus-4-6", "xhigh", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
    ],
)
def test_effort_levels_are_mapped(name: str, level: str, fields: dict[str, Any]) -> None:
    assert thinking_fields(name, level, 64_000) == fields


def test_a_small_answer_leaves_no_room_for_thinking() -> None:
    assert thinking_fields(NAME, "high", 1500) == {}


async def test_the_protocol_works_at_another_address(server: ModelServer) -> None:
    model = endpoint_model(PROVIDERS["custom"], server.base_url, name="m", key="k", protocol=WireProtocol.MESSAGES)
    server.script(message("hi"))
    assert isinstance((await heard(model, request()))[-1], ModelDone)
    assert server.headers[0]["Authorization"] == "Bearer k"
    await model.close()
