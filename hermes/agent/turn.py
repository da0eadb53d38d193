"""Runs turns: one task each, held here, at most so many model calls at a time.

A turn ends in exactly one report unless it was cancelled. A failed call is tried again as `retry` says, but only
while nothing of the answer has been seen: after that a failure is final, so that no answer is stitched together or
stored short. The runner owns its model: one that was replaced is closed when the last turn that uses it has ended.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from loguru import logger

from hermes.agent.failure import failure, malformed, model_error
from hermes.agent.retry import next_delay
from hermes.errors import ModelError
from hermes.events import TextDelta
from hermes.ports import Hub, Model, ModelDone, ModelRequest, ModelText, TurnHandle, TurnJob, TurnReport
from hermes.types import Failure, FailureKind

Report = Callable[[TurnReport], None]


class _RunningTurn:
    """A turn in flight and the handle to it."""

    __slots__ = ("cancelled", "model", "task")

    def __init__(self, model: Model) -> None:
        self.model = model
        self.cancelled = False
        self.task: asyncio.Task[None]

    def cancel(self) -> None:
        self.cancelled = True
        self.task.cancel()


class Slots:
    """So many at a time; how many can change while some are taken."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.taken = 0

    async def __aenter__(self) -> None:
        while self.taken >= self._most:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                self._wake()  # it may have been its turn: then it is the next one's
                raise
        self.taken += 1

    async def __aexit__(self, *_: object) -> None:
        self.taken -= 1
        self._wake()

    def resize(self, most: int) -> None:
        self._most = most
        self._wake()

    def _wake(self) -> None:
        free = self._most - self.taken
        while free > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1


class TurnRunner:
    def __init__(
        self,
        *,
        model: Model,
        hub: Hub,
        max_concurrent: int,
        random: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._model = model
        self._hub = hub
        self._slots = Slots(max_concurrent)
        self._random = random
        self._sleep = sleep
        self._turns: set[_RunningTurn] = set()
        self._closings: set[asyncio.Task[None]] = set()
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def active(self) -> int:
        return len(self._turns)

    def start(self, job: TurnJob, report: Report) -> TurnHandle:
        turn = _RunningTurn(self._model)
        turn.task = asyncio.create_task(self._run(turn, job, report), name=f"turn {job.turn}")
        turn.task.add_done_callback(lambda _: self._ended(turn, job))
        self._turns.add(turn)
        self._idle.clear()
        if self._closed:  # on the way down: the journal has the turn, the next start continues it
            turn.cancel()
        return turn

    def set_model(self, model: Model) -> None:
        """Turns from now on use this one."""
        old, self._model = self._model, model
        self._release(old)

    def set_max_concurrent(self, most: int) -> None:
        self._slots.resize(most)

    def counts(self) -> dict[str, int]:
        """How many turns are in flight, and how many of them have a model call under way."""
        return {"in_flight": len(self._turns), "calling": self._slots.taken}

    async def until_idle(self) -> None:
        """Until no turn is in flight."""
        await self._idle.wait()

    async def close(self) -> None:
        """Cancel every turn, wait for them, and close the model."""
        self._closed = True
        for turn in tuple(self._turns):
            turn.cancel()
        while pending := {turn.task for turn in self._turns} | self._closings:
            await asyncio.wait(pending)
        await self._model.close()

    async def _run(self, turn: _RunningTurn, job: TurnJob, report: Report) -> None:
        outcome = await self._outcome(turn.model, job)
        if not turn.cancelled:  # a library on the way may have swallowed the cancellation
            report(outcome)

    async def _outcome(self, model: Model, job: TurnJob) -> TurnReport:
        published: list[str] = []
        tries = 0
        while True:
            try:
                async with self._slots:
                    done = await self._ask(model, job, published)
                return _answered(job, done, "".join(published))
            except ModelError as error:
                tries += 1
                delay_s = None if published else next_delay(error.failure, tries, self._random())
                if delay_s is None:
                    return _failed(job, error.failure)
                kind = error.failure.kind
                logger.info("turn {} of {}: {}, next try in {:.1f} s", job.turn, job.session, kind, delay_s)
            # The outermost edge of a turn: whatever a model does, its session is told and lives on.
            except Exception as error:  # noqa: BLE001
                logger.opt(exception=True).error("turn {} of {} broke", job.turn, job.session)
                return _failed(job, failure(FailureKind.INTERNAL, f"the turn broke ({type(error).__name__})"))
            await self._sleep(delay_s)

    async def _ask(self, model: Model, job: TurnJob, published: list[str]) -> ModelDone:
        """One call. What it says is published as it comes; what it must not end with is a ModelError."""
        request = ModelRequest(session=job.session, messages=job.messages, options=job.options)
        done: ModelDone | None = None
        async for chunk in model.stream(request):
            if isinstance(chunk, ModelText):
                published.append(chunk.text)
                self._hub.publish(TextDelta(session=job.session, turn=job.turn, text=chunk.text))
            else:
                done = chunk
        if done is None:
            raise malformed("the answer was cut off: the model did not say that it had finished")
        if done.tool_calls or done.finish_reason in ("tool_calls", "function_call"):
            what = "the model asked to run a tool, and this version answers with text only"
            raise model_error(FailureKind.UNSUPPORTED, what)
        if not any(map(str.strip, published)):
            raise malformed(f"the answer is empty (finish reason {done.finish_reason!r})")
        return done

    def _ended(self, turn: _RunningTurn, job: TurnJob) -> None:
        self._turns.discard(turn)
        if not self._turns:
            self._idle.set()
        if not turn.task.cancelled() and (error := turn.task.exception()):
            logger.opt(exception=error).error("the outcome of turn {} of {} was not taken", job.turn, job.session)
        self._release(turn.model)

    def _release(self, model: Model) -> None:
        """Close a model that nobody uses any more."""
        if model is self._model or any(turn.model is model for turn in self._turns):
            return
        closing = asyncio.create_task(model.close(), name=f"close model {model.name}")
        self._closings.add(closing)
        closing.add_done_callback(self._closings.discard)


def _answered(job: TurnJob, done: ModelDone, text: str) -> TurnReport:
    return TurnReport(
        turn=job.turn,
        attempt=job.attempt,
        text=text,
        model=done.model,
        finish_reason=done.finish_reason,
        usage=done.usage,
    )


def _failed(job: TurnJob, why: Failure) -> TurnReport:
    return TurnReport(turn=job.turn, attempt=job.attempt, failure=why)
