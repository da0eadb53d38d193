"""Metrics port: figures of the running daemon, without any content of conversations."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final

from hermes.domain.child.child import ChildEnd, Purpose
from hermes.domain.job.job import JobRunState
from hermes.domain.read.live import LiveSession
from hermes.domain.read.views import ActorView
from hermes.domain.session.state import Phase
from hermes.domain.turn.usage import Usage
from hermes.domain.values import dataclass

TURN_BOUNDS_S: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
LAG_BOUNDS_S: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)


class Distribution:
    """Counts of observed values by upper bound, and their sum."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)  # the last one: above all bounds
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFigures:
    """Turns since the start of the daemon."""

    ended: Mapping[str, int]  # by outcome: answered, or the kind of failure
    latency_s: Distribution  # from acceptance to the end
    first_token_s: Distribution  # from acceptance to the first text
    used: Mapping[str, Usage]  # by model


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildFigures:
    """Child sessions. The last field counts since the start of the daemon."""

    working: int = 0
    waiting: int = 0
    ended: Mapping[tuple[Purpose, ChildEnd], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFigures:
    """Hooks by outcome, and events of webhooks by route and outcome, since the start of the daemon."""

    hooks: Mapping[str, int] = field(default_factory=dict)
    hooks_waiting: int = 0
    webhooks: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFigures:
    """Scheduled jobs. The last field counts since the start of the daemon."""

    stored: int = 0
    next_due: float | None = None
    ended: Mapping[JobRunState, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonFigures:
    """Everything that a scrape shows."""

    turns: TurnFigures
    turns_running: int
    sessions_stored: int
    sessions_live: int
    sessions_waiting: int  # for a person
    mailbox: Mapping[str, int]  # waiting messages by kind of actor
    loop_lag_s: Distribution
    commits: int
    transactions: int
    commits_took_s: float
    waiting_writes: int
    outbox: int
    dead_letters: int
    store_bytes: int
    processes: int
    memory_bytes: int
    uptime_s: float
    ready: bool
    version: str
    children: ChildFigures = ChildFigures()
    events: EventFigures = EventFigures()
    jobs: JobFigures = JobFigures()
    learned: Mapping[tuple[str, str], int] = field(default_factory=dict)  # changes: what, and by whom or how
    now: float = 0.0  # wall clock


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSample:
    """Sample of the running daemon for a live view. Its sessions have titles: it is not for metrics."""

    figures: DaemonFigures
    phases: Mapping[Phase, int]  # of the sessions in memory
    sessions: Sequence[LiveSession]  # the first ones
    matching: int
    actors: Sequence[ActorView]  # all except sessions
    platforms: Sequence[Mapping[str, str]]
    calling: int  # turns that call the model
    lag_s: tuple[float, ...]  # of the event loop, one value a second
    cpu_s: float  # of the daemon since its start
