"""One answer of a model: asked again as `retry` says, then asked of the next model in the chain.

A failed call leaves nothing behind: what was said of an answer that broke off is taken back, and an answer is whole
or it is a failure. Which failures another model may help against is decided here; an overflow is not one of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from loguru import logger

from hermes.agent.failure import failure, malformed
from hermes.agent.reasoning import ReasoningFilter
from hermes.agent.retry import next_delay
from hermes.agent.slots import Slots
from hermes.errors import ModelError
from hermes.ports.agent import Model, ModelDone, ModelRequest, ModelText
from hermes.types import Failure, FailureKind
from hermes.values import dataclass

FINAL = frozenset({FailureKind.CONTEXT_OVERFLOW, FailureKind.POLICY, FailureKind.UNSUPPORTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    text: str
    done: ModelDone
    place: int  # of the model in the chain: 0 is the first choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Who hears of an answer while it comes."""

    text: Callable[[str], None] = lambda _: None
    reset: Callable[[], None] = lambda: None  # what was said so far does not count
    trouble: Callable[[str], None] = lambda _: None  # what went wrong, and what is done about it


class Caller:
    def __init__(
        self, *, slots: Slots, random: Callable[[], float], sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        self._slots = slots
        self._random = random
        self._sleep = sleep

    async def ask(
        self,
        chain: Sequence[Model],
        request: ModelRequest,
        listener: Listener,
        *,
        first: int = 0,
        suited: Callable[[ModelRequest, str], Awaitable[ModelRequest]] | None = None,
    ) -> Reply | Failure:
        """`first` is the place in the chain to begin at; those before it come last. `suited` makes the request what
        the model of that name can take.
        """
        problems: list[tuple[Model, Failure]] = []
        places = sorted(range(len(chain)), key=lambda place: (place < first, place))
        for number, place in enumerate(places, 1):
            model = chain[place]
            # A model's name of choice is meant for the first one; the others have their own.
            wanted = request if place == 0 else request.for_another()
            if suited is not None:
                wanted = await suited(wanted, wanted.model or model.name)
            answer = await self._ask_one(model, wanted, listener, place)
            if isinstance(answer, Reply):
                return answer
            problems.append((model, answer))
            if answer.kind in FINAL:
                break
            if number < len(places):
                listener.trouble(f"{model.name} failed ({answer.kind}); asking {chain[places[number]].name} instead")
        return _in_one(problems)

    async def _ask_one(self, model: Model, request: ModelRequest, listener: Listener, place: int) -> Reply | Failure:
        tries = 0
        while True:
            said: list[str] = []
            try:
                async with self._slots:
                    done = await _stream(model, request, listener, said)
                return Reply(text="".join(said), done=done, place=place)
            except ModelError as error:
                problem = error.failure
            # The outermost edge of a model: whatever it does, its session is told and lives on.
            except Exception as error:  # noqa: BLE001
                logger.opt(exception=True).error("model {} broke", model.name)
                problem = failure(FailureKind.INTERNAL, f"the model's adapter broke ({type(error).__name__})")
            if said:
                listener.reset()
            tries += 1
            delay_s = next_delay(problem, tries, self._random())
            if delay_s is None:
                return problem
            logger.info("session {}: {}, next try in {:.1f} s", request.session, problem.kind, delay_s)
            listener.trouble(f"{problem.message}; next try in {delay_s:.0f} s")
            await self._sleep(delay_s)


def _in_one(problems: Sequence[tuple[Model, Failure]]) -> Failure:
    """The failure of the one that was asked first, with a word on the others: a person configures that one."""
    if not problems:
        return failure(FailureKind.INTERNAL, "there is no model to ask")
    (_, problem), *others = problems
    if not others:
        return problem
    also = ", ".join(f"{model.name}: {each.kind}" for model, each in others)
    return replace(problem, message=f"{problem.message}; the others in model.fallbacks failed too ({also})")


async def _stream(model: Model, request: ModelRequest, listener: Listener, said: list[str]) -> ModelDone:
    """Make one call. Text is passed on as it comes, without reasoning; an answer that is none is a ModelError."""
    done: ModelDone | None = None
    reasoning = ReasoningFilter()

    def heard(text: str) -> None:
        if text:
            said.append(text)
            listener.text(text)

    async for chunk in model.stream(request):
        if isinstance(chunk, ModelText):
            heard(reasoning.feed(chunk.text))
        else:
            done = chunk
    if done is not None:
        heard(reasoning.finish())
    if done is None:
        raise malformed("the answer was cut off: the model did not say that it had finished")
    if not done.tool_calls and not any(map(str.strip, said)):
        what = "holds only reasoning" if reasoning.found else "is empty"
        raise malformed(f"the answer {what} (finish reason {done.finish_reason!r})")
    return done
