"""Model call with retries (`retry`) and fallbacks to the next models of the chain.

An answer is complete or a failure: the text of an interrupted answer is withdrawn. Some failures, such as a context
overflow, end the chain without trying another model.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, nullcontext
from dataclasses import replace

from loguru import logger

from hermes.agent.models.failure import failure, malformed
from hermes.agent.models.health import ModelHealth
from hermes.agent.models.reasoning import ReasoningFilter
from hermes.agent.models.retry import next_delay
from hermes.agent.models.slots import Slots
from hermes.domain.errors import ModelError
from hermes.domain.reasoning import Reasoning
from hermes.domain.turn_failure import Failure, FailureKind
from hermes.domain.values import dataclass
from hermes.ports.agent import (
    Model,
    ModelDone,
    ModelQueued,
    ModelReasoning,
    ModelRequest,
    ModelStarted,
    ModelText,
)

FINAL = frozenset({FailureKind.CONTEXT_OVERFLOW, FailureKind.POLICY, FailureKind.UNSUPPORTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    text: str
    done: ModelDone
    place: int  # of the model in the chain: 0 is the first choice
    reasoning: Reasoning = Reasoning()
    waited_s: float = 0.0  # while the model answered others


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A failed call that is repeated after a delay or by the next model."""

    model: str
    failure: Failure
    tries: int  # of that model, this one included
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyListener:
    """Callbacks for an answer while it streams."""

    text: Callable[[str], None] = lambda _: None
    reasoning: Callable[[str], None] = lambda _: None
    reset: Callable[[], None] = lambda: None  # discard the text so far
    trouble: Callable[[str], None] = lambda _: None  # a problem and its handling, for the person
    retried: Callable[[Retry], None] = lambda _: None


class ModelChain:
    def __init__(
        self,
        *,
        slots: Slots,
        random: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        health: ModelHealth | None = None,
    ) -> None:
        self.waiting = 0  # calls that wait until the model has answered others
        self._health = health or ModelHealth(clock=time.time)
        self._slots = slots
        self._random = random
        self._sleep = sleep

    async def ask(
        self,
        chain: Sequence[Model],
        request: ModelRequest,
        listener: ReplyListener,
        *,
        first: int = 0,
        suited: Callable[[ModelRequest, str], Awaitable[ModelRequest]] | None = None,
    ) -> ModelReply | Failure:
        """Ask the models in order and return the first answer, or a failure.

        `first` is the place in the chain to start at; those before it come last. `suited` adapts the request to the
        model of that name.
        """
        problems: list[tuple[Model, Failure]] = []
        places = sorted(range(len(chain)), key=lambda place: (place < first, place))
        for number, place in enumerate(places, 1):
            model = chain[place]
            # The requested model name is for the first endpoint only; fallbacks have their own.
            wanted = request if place == 0 else request.for_another()
            if suited is not None:
                wanted = await suited(wanted, wanted.model or model.name)
            answer, tries = await self._ask_one(model, wanted, listener, place)
            if isinstance(answer, ModelReply):
                return answer
            problems.append((model, answer))
            if answer.kind in FINAL:
                break
            if number < len(places):
                listener.trouble(f"{model.name} failed ({answer.kind}); asking {chain[places[number]].name} instead")
                listener.retried(Retry(model=model.name, failure=answer, tries=tries))
        return _in_one(problems)

    async def _ask_one(
        self, model: Model, request: ModelRequest, listener: ReplyListener, place: int
    ) -> tuple[ModelReply | Failure, int]:
        """Return the result and the number of tries."""
        tries = 0
        while True:
            heard = _Heard(listener)
            tries += 1
            wait = _Wait(self)
            try:
                async with AsyncExitStack() as held:
                    with wait if self._slots.full else nullcontext():
                        await held.enter_async_context(self._slots)
                    done = await _stream(model, request, heard, wait)
                self._health.answered()
                return heard.reply(model, request, place, done, wait), tries
            except ModelError as error:
                problem = error.failure
            # The outermost edge of a model: the session must get a result.
            except Exception as error:  # noqa: BLE001
                logger.opt(exception=True).error("model {}: unexpected error", model.name)
                problem = failure(FailureKind.INTERNAL, f"the model's adapter failed ({type(error).__name__})")
            if heard.texts or heard.thoughts:
                listener.reset()
            self._health.failed(model.name, problem)
            delay_s = next_delay(problem, tries, self._random())
            _log_failure(model.name, request, problem, delay_s)
            if delay_s is None:
                return problem, tries
            listener.trouble(f"{problem.message}; next try in {delay_s:.0f} s")
            listener.retried(Retry(model=model.name, failure=problem, tries=tries, delay_s=delay_s))
            await self._sleep(delay_s)


class _Wait:
    """Measures the time that a call waits for others, and counts it as waiting."""

    def __init__(self, caller: ModelChain) -> None:
        self.waited_s = 0.0
        self._caller = caller
        self._since: float | None = None

    def __enter__(self) -> None:
        if self._since is None:
            self._since = asyncio.get_running_loop().time()
            self._caller.waiting += 1

    def __exit__(self, *_: object) -> None:
        if self._since is not None:
            self.waited_s += asyncio.get_running_loop().time() - self._since
            self._since = None
            self._caller.waiting -= 1


def _log_failure(model: str, request: ModelRequest, problem: Failure, delay_s: float | None) -> None:
    """Log codes and the address only: the provider's text may quote the conversation."""
    what = " ".join(filter(None, (problem.kind, problem.cause, str(problem.status or ""))))
    where = f" at {problem.address}" if problem.address else ""
    then = "giving up" if delay_s is None else f"next try in {delay_s:.1f} s"
    logger.info("session {}: model {}{}: {}; {}", request.session, model, where, what, then)


def _in_one(problems: Sequence[tuple[Model, Failure]]) -> Failure:
    """Return the first model's failure, with the kinds of the others' failures."""
    if not problems:
        return failure(FailureKind.INTERNAL, "no model is configured")
    (_, problem), *others = problems
    if not others:
        return problem
    also = ", ".join(f"{model.name}: {each.kind}" for model, each in others)
    return replace(problem, message=f"{problem.message}; the models in model.fallbacks failed too ({also})")


class _Heard:
    """Text and reasoning of one answer, passed on as they arrive."""

    def __init__(self, listener: ReplyListener) -> None:
        self.listener = listener
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.parser = ReasoningFilter()

    def add(self, text: str) -> None:
        shown = self.parser.feed(text)
        if self.parser.take_back() and self.texts:
            taken = "".join(self.texts)
            self.texts.clear()
            self.listener.reset()
            self.think(taken)
        self.think(self.parser.take_thought())
        self._say(shown)

    def think(self, text: str) -> None:
        if text:
            self.thoughts.append(text)
            self.listener.reasoning(text)

    def finish(self) -> None:
        rest = self.parser.finish()
        self.think(self.parser.take_thought())
        self._say(rest)

    def reply(self, model: Model, request: ModelRequest, place: int, done: ModelDone, wait: _Wait) -> ModelReply:
        thought = "".join(self.thoughts).strip()
        name = request.model or model.name
        reasoning = Reasoning(text=thought, provider=model.provider, model=name, items=done.reasoning)
        text = "".join(self.texts)
        return ModelReply(text=text, done=done, place=place, waited_s=wait.waited_s, reasoning=reasoning)

    def _say(self, text: str) -> None:
        if text:
            self.texts.append(text)
            self.listener.text(text)


async def _stream(model: Model, request: ModelRequest, heard: _Heard, wait: _Wait) -> ModelDone:
    """Make one call and pass text and reasoning on as they arrive. Raises ModelError for an empty answer."""
    done: ModelDone | None = None
    with ExitStack() as waiting:
        async for chunk in model.stream(request):
            match chunk:
                case ModelText():
                    heard.add(chunk.text)
                case ModelReasoning():
                    heard.think(chunk.text)
                case ModelQueued():
                    waiting.enter_context(wait)
                    before = "1 call is" if chunk.ahead == 1 else f"{chunk.ahead} calls are"
                    heard.listener.trouble(f"{model.name} answers one call at a time; {before} before this one")
                case ModelStarted():
                    waiting.close()
                case ModelDone():
                    done = chunk
    if done is None:
        raise malformed("the answer is incomplete: the model did not report its end")
    heard.finish()
    if not done.tool_calls and not any(map(str.strip, heard.texts)):
        what = "contains only reasoning" if heard.thoughts or heard.parser.found else "is empty"
        raise malformed(f"the answer {what} (finish reason {done.finish_reason!r})")
    return done
