from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hermes.agent.chat_message import encode
from hermes.config.providers import PROVIDERS
from hermes.domain.errors import ModelError
from hermes.domain.ids import SessionId
from hermes.domain.provider import WireProtocol
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.reasoning import Reasoning, fields_of
from hermes.domain.turn.turn_failure import Failure, FailureCause, FailureKind
from hermes.domain.turn.usage import Usage
from hermes.ports.agent import Model, ModelDone, ModelReasoning, ModelRequest, ModelText
from tests.agent.harness import endpoint_model, heard
from tests.support.model_server import CUT, STALL, Drip, ModelServer, Reply, error, event, page, stream
from tests.support.responses_protocol import SEALED, complaint, failed, response, sent

K = FailureKind
KEY = "sk-canary-0123456789"
TOOL = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def model(server: ModelServer) -> AsyncIterator[Model]:
    model = made(server.base_url)
    yield model
    await model.close()


def made(base_url: str, **changes: Any) -> Model:
    fields: dict[str, Any] = {"name": "gpt-5", "key": KEY, "protocol": WireProtocol.RESPONSES}
    return endpoint_model(PROVIDERS["openai"], base_url, **(fields | changes))


def says(role: str, content: Any, **fields: Any) -> EncodedMessage:
    return encode({"role": role, "content": content, **fields})


def request(*messages: EncodedMessage, **changes: Any) -> ModelRequest:
    return ModelRequest(session=SessionId("s"), messages=messages or (says("user", "hi"),), **changes)


async def failure_of(model: Model) -> Failure:
    with pytest.raises(ModelError) as caught:
        await heard(model, request())
    return caught.value.failure


async def test_an_answer_is_streamed_with_reasoning_and_usage(server: ModelServer, model: Model) -> None:
    server.script(response("Hello there", thought="They greet me.", prompt=100, cached=90))
    *parts, done = await heard(model, request())
    assert "".join(each.text for each in parts if isinstance(each, ModelText)) == "Hello there"
    assert "".join(each.text for each in parts if isinstance(each, ModelReasoning)) == "They greet me."
    assert isinstance(done, ModelDone)
    assert (done.finish_reason, done.model) == ("stop", "gpt-x-1")
    assert done.usage == Usage(prompt_tokens=100, completion_tokens=7, cached_tokens=90)
    assert [item["encrypted_content"] for item in done.reasoning] == [SEALED + "They greet me."]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert complaint(server.requests[0]) == ""


async def test_reasoning_items_and_parallel_calls_come_back(server: ModelServer, model: Model) -> None:
    server.script(response(thought="Two.", calls=[("c1", "look", {"at": "é"}), ("c2", "look", {})]))
    tools = json.dumps([TOOL]).encode()
    done = (await heard(model, request(tools=tools, reasoning="high")))[-1]
    assert isinstance(done, ModelDone)
    assert done.finish_reason == "tool_calls"
    kept = fields_of(Reasoning(text="Two.", provider="openai", model="gpt-5", items=done.reasoning))
    foreign = fields_of(Reasoning(text="x", provider="openai", model="o3", items=({"type": "reasoning"},)))
    server.handler = lambda body, number: response("ok")
    await heard(
        model,
        request(
            says("system", "Be kind."),
            says("user", [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:,"}}]),
            says("assistant", "earlier", **foreign),
            says("user", "look"),
            says("assistant", None, tool_calls=list(done.tool_calls), **kept),
            says("tool", "a tree", tool_call_id="c1"),
            says("tool", "a house", tool_call_id="c2"),
            tools=tools,
            options=b'{"max_tokens":50,"seed":1,"response_format":{"type":"json_object"}}',
        ),
    )
    first, body = server.requests
    assert complaint(body) == ""
    assert first["reasoning"] == {"effort": "high", "summary": "auto"}
    assert [item["type"] for item in body["input"]] == [
        *["message"] * 4,
        "reasoning",
        *["function_call"] * 2,
        *["function_call_output"] * 2,
    ]
    assert body["include"] == ["reasoning.encrypted_content"]
    assert (body["max_output_tokens"], body["text"]) == (50, {"format": {"type": "json_object"}})
    assert "seed" not in body


async def test_a_model_that_does_not_reason_is_not_asked_for_its_reasoning(server: ModelServer) -> None:
    model = made(server.base_url, name="gpt-4o")
    server.script(response("ok"))
    await heard(model, request())
    assert "include" not in server.requests[0]
    await model.close()


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error(400, code="context_length_exceeded"), K.CONTEXT_OVERFLOW),
        (error(401, code="invalid_api_key", message=f"bad {KEY}"), K.AUTH),
        (error(403), K.AUTH),
        (error(429, code="rate_limit_exceeded"), K.RATE_LIMIT),
        (error(429, code="insufficient_quota"), K.BILLING),
        (page(502), K.OVERLOADED),
        (Reply(headers={"Content-Type": "application/json"}, parts=(b"{}",)), K.MALFORMED_REPLY),
        (failed("rate_limit_exceeded"), K.RATE_LIMIT),
        (failed("server_error"), K.OVERLOADED),
        (stream(event({"error": {"message": "x", "code": 429}})), K.RATE_LIMIT),
        (stream(sent("error", code="server_error", message="x")), K.OVERLOADED),
        (stream(sent("response.created", response={})), K.MALFORMED_REPLY),
        (stream(b"data: {broken\n\n"), K.MALFORMED_REPLY),
        (stream(sent("response.created", response={}), CUT), K.CONNECTION),
        (response("no", cut="content_filter"), K.POLICY),
    ],
)
async def test_a_fault_has_its_kind(server: ModelServer, model: Model, reply: Reply, kind: FailureKind) -> None:
    server.script(reply)
    failure = await failure_of(model)
    assert failure.kind is kind
    assert KEY not in failure.message


async def test_retry_after_is_kept_and_the_package_does_not_retry(server: ModelServer, model: Model) -> None:
    server.script(error(429, retry_after="7"))
    failure = await failure_of(model)
    assert (failure.retry_after_s, failure.status) == (7.0, 429)
    assert len(server.requests) == 1


async def test_silence_is_a_timeout_and_no_listener_a_refused_connection(server: ModelServer) -> None:
    server.script(stream(sent("response.created", response={}), STALL))
    slow = made(server.base_url, idle_timeout_s=0.3)
    assert (await failure_of(slow)).kind is K.TIMEOUT
    await slow.close()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        gone = made(f"http://127.0.0.1:{unused.getsockname()[1]}/v1")
        failure = await failure_of(gone)
        await gone.close()
    assert (failure.kind, failure.cause) == (K.CONNECTION, FailureCause.REFUSED)


@pytest.mark.parametrize("trickle", [b": alive\n\n", sent("response.output_text.delta", delta="x")])
async def test_a_stream_that_hardly_moves_is_ended(server: ModelServer, trickle: bytes) -> None:
    server.script(stream(Drip(data=trickle, every_s=0.02)))
    model = made(server.base_url, idle_timeout_s=0.05)
    assert (await failure_of(model)).kind is K.TIMEOUT
    await server.until(lambda: server.left == 1)
    await model.close()


async def test_an_unknown_model_is_answered_with_similar_names(server: ModelServer) -> None:
    server.models = [{"id": "gpt-5-mini"}, {"id": "whisper-1"}]
    server.script(error(404, code="model_not_found"))
    model = made(server.base_url, name="gpt-5-mni")
    assert "gpt-5-mini" in (await failure_of(model)).message
    await model.close()


async def test_an_answer_cut_by_its_length_says_so(server: ModelServer, model: Model) -> None:
    server.script(response("half", cut="max_output_tokens"))
    done = (await heard(model, request()))[-1]
    assert isinstance(done, ModelDone)
    assert done.finish_reason == "length"


def test_only_a_call_imports_the_package() -> None:
    program = """
import sys
from hermes.app import composition
from hermes.app.factories.models import make_models
from hermes.config.settings import Config
from hermes.config.model_settings import ModelConfig
make_models(Config(model=ModelConfig(provider="openai", protocol="responses", name="m", api_key_env="")), {})
print("openai" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=50)
    assert ran.stdout.strip() == "False"
