"""Runs the work of sessions as tasks: model calls, tool calls and summaries.

Each piece of work ends in exactly one report unless it is cancelled. Its progress is published on the hub. The runner
owns its models: a replaced set is closed when the last piece of work that uses it has ended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from loguru import logger

from hermes.agent.model_step import ModelStep, not_thought
from hermes.agent.models.chain import ModelChain
from hermes.agent.models.health import ModelHealth
from hermes.agent.models.model_set import ModelSet
from hermes.agent.models.slots import Slots
from hermes.agent.summariser import Summariser
from hermes.agent.tool_step import ToolStep, not_acted
from hermes.domain.ids import SessionId
from hermes.domain.session.jobs import (
    ModelJob,
    ModelReport,
    RetryReport,
    SummaryJob,
    SummaryReport,
    ToolJob,
    ToolReport,
)
from hermes.ports.agent import Agent, Model, Work

R = TypeVar("R")


class _Piece(Work):
    """A piece of work in flight and the handle to it."""

    __slots__ = ("cancelled", "models", "said", "session", "task")

    def __init__(self, session: SessionId, models: ModelSet) -> None:
        self.session = session
        self.models = models
        self.cancelled = False
        self.said: list[str] = []  # text of a model's incomplete answer
        self.task: asyncio.Task[None]

    @property
    def written(self) -> str:
        return "".join(self.said)

    def cancel(self) -> None:
        self.cancelled = True
        self.task.cancel()


class AgentRunner(Agent):
    def __init__(
        self,
        *,
        models: ModelSet,
        thinking: ModelStep,
        acting: ToolStep,
        summarising: Summariser,
        max_concurrent: int,
        random: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        health: ModelHealth | None = None,
    ) -> None:
        self._models = models
        self._thinking = thinking
        self._acting = acting
        self._summarising = summarising
        self._slots = Slots(max_concurrent)
        self._caller = ModelChain(slots=self._slots, random=random, sleep=sleep, health=health)
        self._pieces: set[_Piece] = set()
        self._closings: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def active(self) -> int:
        return len(self._pieces)

    @property
    def busy(self) -> list[SessionId]:
        """Return the sessions with work in flight."""
        return sorted({piece.session for piece in self._pieces})

    def think(self, job: ModelJob, report: Callable[[ModelReport | RetryReport], None]) -> Work:
        models = self._models
        return self._start(
            job.session,
            f"think {job.turn}",
            lambda said: self._thinking.answer(job, models, self._caller, said, report),
            lambda error: not_thought(job, error),
            report,
        )

    def act(self, job: ToolJob, report: Callable[[ToolReport], None]) -> Work:
        return self._start(
            job.session,
            f"call {job.call} of {job.turn}",
            lambda _: self._acting.run(job, time.monotonic),
            lambda error: not_acted(job, error),
            report,
        )

    def summarise(self, job: SummaryJob, report: Callable[[SummaryReport], None]) -> Work:
        models = self._models
        return self._start(
            job.session,
            f"summary {job.session}",
            lambda _: self._summarising.shorten(job, models, self._caller),
            lambda error: SummaryReport(problem=f"it failed unexpectedly ({type(error).__name__})"),
            report,
        )

    @property
    def models(self) -> ModelSet:
        return self._models

    @property
    def first_model(self) -> Model:
        return self._models.chain[0]

    def model_names(self) -> list[str]:
        """Return the models' names, first choice first."""
        return [model.name for model in self._models.chain]

    def set_models(self, models: ModelSet) -> None:
        """Replace the models for new work."""
        old, self._models = self._models, models
        self._release(old)

    def set_patience(self, patience_s: float) -> None:
        """Set the time to wait out an outage of all models."""
        self._caller.patience_s = patience_s

    def open_circuits(self) -> list[str]:
        """Return the endpoints that failed repeatedly and are not called for a while."""
        return self._caller.circuits.open_endpoints()

    def set_max_concurrent(self, most: int) -> None:
        self._slots.resize(most)

    def counts(self) -> dict[str, int]:
        """Return the number of pieces of work in flight, of running and of waiting model calls."""
        waiting = self._caller.waiting
        return {"in_flight": len(self._pieces), "calling": self._slots.taken, "waiting": waiting}

    async def until_idle(self) -> None:
        """Wait until no work is in flight."""
        while tasks := [piece.task for piece in self._pieces]:
            await asyncio.wait(tasks)

    async def close(self) -> None:
        """Cancel everything, wait for it, and close the models."""
        self._closed = True
        for piece in tuple(self._pieces):
            piece.cancel()
        while pending := {piece.task for piece in self._pieces} | self._closings:
            await asyncio.wait(pending)
        await self._models.close()

    def _start(
        self,
        session: SessionId,
        name: str,
        work: Callable[[list[str]], Awaitable[R]],
        broke: Callable[[Exception], R],
        report: Callable[[R], None],
    ) -> Work:
        piece = _Piece(session, self._models)

        async def run() -> None:
            try:
                result = await work(piece.said)
            # The outermost edge of a piece of work: its session must get a report.
            except Exception as error:  # noqa: BLE001
                logger.opt(exception=True).error("agent: session {}: {} failed unexpectedly", session, name)
                result = broke(error)
            if not piece.cancelled:  # a library may have swallowed the cancellation
                report(result)

        piece.task = asyncio.create_task(run(), name=name)
        piece.task.add_done_callback(lambda _: self._ended(piece))
        self._pieces.add(piece)
        if self._closed:  # shutting down: the journal has this work, and the next boot continues it
            piece.cancel()
        return piece

    def _ended(self, piece: _Piece) -> None:
        self._pieces.discard(piece)
        if not piece.task.cancelled() and (error := piece.task.exception()):
            logger.opt(exception=error).error("agent: could not deliver the report of {}", piece.task.get_name())
        self._release(piece.models)

    def _release(self, models: ModelSet) -> None:
        """Close models that are no longer used."""
        if models is self._models or any(piece.models is models for piece in self._pieces):
            return
        closing = asyncio.create_task(models.close(), name="close models")
        self._closings.add(closing)
        closing.add_done_callback(self._closings.discard)
