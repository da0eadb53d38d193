"""Model call with retries (`retry`) and fallbacks to the next models of the chain.

An answer is complete or a failure: the text of an interrupted answer is withdrawn. Some failures, such as a context
overflow, end the chain without trying another model.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, nullcontext

from loguru import logger

from hermes.agent.models.circuit import CircuitBreaker
from hermes.agent.models.failure import failure, malformed, while_retried
from hermes.agent.models.health import ModelHealth
from hermes.agent.models.protocols.reasoning import ReasoningFilter
from hermes.agent.models.retry import OUTAGE, next_delay, outage_delay
from hermes.agent.models.slots import Slots
from hermes.domain.errors import ModelError
from hermes.domain.turn.reasoning import Reasoning
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.values import dataclass, replace
from hermes.ports.agent import (
    Model,
    ModelDone,
    ModelQueued,
    ModelReasoning,
    ModelRequest,
    ModelStarted,
    ModelText,
)
from hermes.ports.given import Clock

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
        clock: Clock = time.monotonic,
    ) -> None:
        self.waiting = 0  # calls that wait until the model has answered others
        self.patience_s = 0.0  # for outages of all models
        self.circuits = CircuitBreaker(clock)
        self._clock = clock
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
        places = sorted(range(len(chain)), key=lambda place: (place < first, place))
        question = _Question(chain=chain, request=request, listener=listener, suited=suited)
        began_at, rounds = self._clock(), 0
        failures: dict[int, Failure] = {}
        while True:
            reply = await self._ask_in_order(question, places, failures, once=rounds > 0)
            if reply is not None:
                return reply
            rounds += 1
            problem = _in_one([(chain[place], failure) for place, failure in failures.items()])
            waited_s = self._clock() - began_at
            delay_s = outage_delay(failures.values(), rounds, self._random(), left_s=self.patience_s - waited_s)
            if delay_s is None or any(failure.kind in FINAL for failure in failures.values()):
                return problem
            listener.trouble(still_trying(problem, waited_s=waited_s, patience_s=self.patience_s, delay_s=delay_s))
            listener.retried(Retry(model=chain[places[0]].name, failure=problem, tries=rounds, delay_s=delay_s))
            await self._sleep(delay_s)
            places = [place for place in places if failures[place].kind in OUTAGE]

    async def _ask_in_order(
        self, question: _Question, places: Sequence[int], failures: dict[int, Failure], *, once: bool
    ) -> ModelReply | None:
        """Ask the models at these places and return the first answer. Failures are noted by place."""
        chain, listener = question.chain, question.listener
        for number, place in enumerate(places, 1):
            model = chain[place]
            # The requested model name is for the first endpoint only; fallbacks have their own.
            wanted = question.request if place == 0 else question.request.for_another()
            if question.suited is not None:
                wanted = await question.suited(wanted, wanted.model or model.name)
            answer, tries = await self._ask_one(model, wanted, listener, place, once=once)
            if isinstance(answer, ModelReply):
                return answer
            failures[place] = answer
            if answer.kind in FINAL:
                break
            if number < len(places):
                listener.trouble(f"{model.name} failed ({answer.kind}); asking {chain[places[number]].name} instead")
                listener.retried(Retry(model=model.name, failure=answer, tries=tries))
        return None

    async def _ask_one(
        self, model: Model, request: ModelRequest, listener: ReplyListener, place: int, *, once: bool
    ) -> tuple[ModelReply | Failure, int]:
        """Return the result and the number of tries. With `once`, a failure is not followed by a retry."""
        tries = 0
        while True:
            if self.patience_s and (problem := self.circuits.problem(model.endpoint)):
                return problem, tries
            heard = _Heard(listener)
            tries += 1
            result = await self._try(model, request, heard, place)
            if isinstance(result, ModelReply):
                self.circuits.answered(model.endpoint)
                return result, tries
            problem = result
            self.circuits.failed(model.endpoint, problem)
            if heard.texts or heard.thoughts:
                listener.reset()
            self._health.failed(model.name, problem)
            delay_s = None if once else next_delay(problem, tries, self._random())
            _log_failure(model.name, request, problem, delay_s)
            if delay_s is None:
                return problem, tries
            listener.trouble(f"{while_retried(problem)}; next try in {delay_s:.0f} s")
            listener.retried(Retry(model=model.name, failure=problem, tries=tries, delay_s=delay_s))
            await self._sleep(delay_s)

    async def _try(self, model: Model, request: ModelRequest, heard: _Heard, place: int) -> ModelReply | Failure:
        """Make one call when a slot is free."""
        wait = _Wait(self)
        try:
            with wait if self._slots.full else nullcontext():
                await self._slots.take()
            try:
                done = await _stream(model, request, heard, wait)
            finally:
                self._slots.give_back()
            self._health.answered()
            return heard.reply(model, request, place, done, wait)
        except ModelError as error:
            return error.failure
        # The outermost edge of a model: the session must get a result.
        except Exception as error:  # noqa: BLE001
            logger.opt(exception=True).error("model {}: unexpected error", model.name)
            return failure(FailureKind.INTERNAL, f"the model's adapter failed ({type(error).__name__})")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    chain: Sequence[Model]
    request: ModelRequest
    listener: ReplyListener
    suited: Callable[[ModelRequest, str], Awaitable[ModelRequest]] | None


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


def still_trying(problem: Failure, *, waited_s: float, patience_s: float, delay_s: float) -> str:
    """Return the notice of an outage that is waited out."""
    spent = f"{waited_s:.0f} s" if waited_s < 90 else f"{waited_s / 60:.0f} min"
    limit = f"{patience_s:.0f} s" if patience_s < 90 else f"{patience_s / 60:.0f} min"
    return f"still trying after {spent} (up to {limit}): {while_retried(problem)}; next try in {delay_s:.0f} s"


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
