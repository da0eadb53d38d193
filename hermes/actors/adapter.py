"""Adapter actor: keeps the connection to one chat platform running.

When an adapter ends, by an outage or an error, the cause is logged and shown, and it is restarted with backoff. Other
adapters and sessions are not affected. Its state depends on the platform's answers, not on an established connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from loguru import logger

from hermes.actors.kernel.actor import LoopActor
from hermes.actors.kernel.ref import ActorDeadError
from hermes.domain.backoff import backoff_s
from hermes.domain.errors import PlatformError
from hermes.domain.read.views import ActorView
from hermes.domain.values import dataclass, replace
from hermes.ports.chat import ChatAdapter, ChatIntake
from hermes.ports.given import Clock

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 120.0
SILENT_AFTER_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    problem: str
    retry_after_s: float = 0.0  # requested by the platform


@dataclass(frozen=True, slots=True, kw_only=True)
class _Again:
    """Message to itself: the pause is over."""


class AdapterActor(LoopActor):
    kind = "adapter"

    def __init__(
        self,
        adapter: ChatAdapter,
        *,
        # Its arguments are called when the platform has answered, and when a part of it has a problem.
        edge: Callable[[Callable[[], None], Callable[[str, str], None]], ChatIntake],
        clock: Clock,
        jitter: Callable[[], float],
    ) -> None:
        super().__init__()
        self._adapter = adapter
        self._edge = edge(self._answered, self._note_trouble)
        self._clock = clock
        self._jitter = jitter  # between 0 and 1
        self._task: asyncio.Task[None] | None = None
        self._failures = 0
        self._problem = ""
        self._troubles: dict[str, str] = {}  # problems of parts, by part
        self._answered_at: float | None = None

    def statistics(self) -> ActorView:
        view = super().statistics()
        return replace(view, state=self._state(), last_error=self._what_is_wrong() or view.last_error)

    def _state(self) -> str:
        if self._task is None:
            return "down"
        if self._answered_at is None:
            return "connecting"
        if self._clock() - self._answered_at >= SILENT_AFTER_S:
            return "silent"
        return "impaired" if self._troubles else "running"

    def _what_is_wrong(self) -> str:
        return self._problem or "; ".join(f"{part}: {problem}" for part, problem in self._troubles.items())

    def on_start(self) -> None:
        self._run()

    def on_receive(self, message: object) -> None:
        match message:
            case _Ended():
                self._on_ended(message)
            case _Again():
                self._run()
            case _:
                super().on_receive(message)

    def on_end(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _run(self) -> None:
        self._answered_at = None
        self._troubles.clear()
        self._task = asyncio.create_task(self._keep_on(), name=f"adapter {self.name}")

    async def _keep_on(self) -> None:
        ended = _Ended(problem="it ended by itself")
        try:
            await self._adapter.run(self._edge)
        except PlatformError as error:
            ended = _Ended(problem=str(error), retry_after_s=error.retry_after_s or 0.0)
        # The outermost edge of an adapter: after any error it is restarted.
        except Exception as error:  # noqa: BLE001
            ended = _Ended(problem=str(error) or repr(error))
            logger.debug("{}: {!r}", self, error)
        with suppress(ActorDeadError):
            self.actor_ref.tell(ended)

    def _on_ended(self, ended: _Ended) -> None:
        self._task = None
        self._failures += 1
        problem = ended.problem
        pause_s = backoff_s(self._failures, first_s=FIRST_PAUSE_S, max_s=LONGEST_PAUSE_S, jitter=self._jitter())
        if problem != self._problem:  # log each problem once, not at each retry
            logger.warning("adapter {}: down, retrying: {}", self.name, problem)
        self._problem = problem
        self.tell_later(max(pause_s, ended.retry_after_s), _Again())

    def _answered(self) -> None:
        self._answered_at = self._clock()
        if self._failures:
            logger.info("adapter {}: works again", self.name)
            self._failures = 0
            self._problem = ""

    def _note_trouble(self, part: str, problem: str) -> None:
        before = self._troubles.get(part, "")
        if problem:
            self._troubles[part] = problem
        else:
            self._troubles.pop(part, None)
        if problem and problem != before:  # log each problem once, not at each retry
            logger.warning("adapter {}: {} has a problem, the rest works: {}", self.name, part, problem)
        elif before and not problem:
            logger.info("adapter {}: {} works again", self.name, part)
