"""Ring of samples: what the daemon did lately, for charts. In memory, bounded, without content of conversations."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from loguru import logger

from hermes.domain.errors import HermesError
from hermes.domain.turn.usage import Usage
from hermes.domain.values import dataclass
from hermes.ports.given import Clock
from hermes.ports.metrics import DaemonFigures, Distribution
from hermes.services.turn_meter import ANSWERED

SAMPLE_S: Final = 5.0
KEPT: Final = 720  # samples: an hour


@dataclass(frozen=True, slots=True, kw_only=True)
class FiguresSample:
    """Figures of one interval, and the state at its end. None: nothing was measured in it."""

    number: int  # from 1, without gaps
    at: float
    took_s: float  # length of the interval
    answered: int
    failed: int
    latency_s: float | None  # mean of the turns that ended
    first_token_s: float | None
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float
    commits: int
    commit_s: float | None
    lag_s: float | None  # of the event loop
    memory_bytes: int
    turns_running: int
    sessions_live: int
    sessions_waiting: int
    mailbox: int


class LiveFigures:
    """Takes a sample every few seconds. Event loop only."""

    def __init__(self, figures: Callable[[], Awaitable[DaemonFigures]], clock: Clock) -> None:
        self._figures = figures
        self._clock = clock
        self._samples: deque[FiguresSample] = deque(maxlen=KEPT)
        self._before: _Totals | None = None
        self._taken = asyncio.Event()  # a new one after each sample

    @property
    def latest(self) -> FiguresSample | None:
        return self._samples[-1] if self._samples else None

    def after(self, number: int) -> list[FiguresSample]:
        """Return the kept samples after this one, oldest first. An unknown number means all of them."""
        if not self._samples or number > self._samples[-1].number:
            return list(self._samples)
        return [each for each in self._samples if each.number > number]

    async def run(self) -> None:
        """Take samples until cancelled."""
        while True:
            try:
                await self.take()
            except HermesError as error:  # the store; the next sample tries again
                logger.warning("live figures: no sample: {}", error)
            await asyncio.sleep(SAMPLE_S)

    async def take(self) -> None:
        figures = await self._figures()
        totals = _totals(figures, self._clock())
        if self._before is not None:
            number = self._samples[-1].number + 1 if self._samples else 1
            self._samples.append(_sample(number, self._before, totals, figures))
            taken, self._taken = self._taken, asyncio.Event()
            taken.set()
        self._before = totals

    async def next(self) -> None:
        """Wait for the next sample."""
        await self._taken.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Totals:
    """Counters since the start of the daemon."""

    at: float
    answered: int
    ended: int
    latency: tuple[int, float]  # how many, and their sum
    first_token: tuple[int, float]
    usage: Usage
    commits: tuple[int, float]
    lag: tuple[int, float]


def _totals(figures: DaemonFigures, now: float) -> _Totals:
    turns = figures.turns
    return _Totals(
        at=now,
        answered=turns.ended.get(ANSWERED, 0),
        ended=sum(turns.ended.values()),
        latency=_counted(turns.latency_s),
        first_token=_counted(turns.first_token_s),
        usage=sum(turns.used.values(), Usage()),
        commits=(figures.commits, figures.commits_took_s),
        lag=_counted(figures.loop_lag_s),
    )


def _counted(values: Distribution) -> tuple[int, float]:
    return sum(values.counts), values.total


def _sample(number: int, before: _Totals, now: _Totals, figures: DaemonFigures) -> FiguresSample:
    answered = now.answered - before.answered
    return FiguresSample(
        number=number,
        at=now.at,
        took_s=max(0.0, now.at - before.at),
        answered=answered,
        failed=now.ended - before.ended - answered,
        latency_s=_mean(before.latency, now.latency),
        first_token_s=_mean(before.first_token, now.first_token),
        prompt_tokens=now.usage.prompt_tokens - before.usage.prompt_tokens,
        completion_tokens=now.usage.completion_tokens - before.usage.completion_tokens,
        cost_usd=now.usage.cost_usd - before.usage.cost_usd,
        commits=now.commits[0] - before.commits[0],
        commit_s=_mean(before.commits, now.commits),
        lag_s=_mean(before.lag, now.lag),
        memory_bytes=figures.memory_bytes,
        turns_running=figures.turns_running,
        sessions_live=figures.sessions_live,
        sessions_waiting=figures.sessions_waiting,
        mailbox=sum(figures.mailbox.values()),
    )


def _mean(before: tuple[int, float], now: tuple[int, float]) -> float | None:
    count = now[0] - before[0]
    return (now[1] - before[1]) / count if count > 0 else None
