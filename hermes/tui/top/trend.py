"""Trends of a live view: rates between samples, and small graphs of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.domain.values import dataclass, replace
from hermes.tui.top.sample import Sample

MAX_POINTS = 60
_BARS = "▁▂▃▄▅▆▇█"
_ASCII_BARS = "_.:-=+*#"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trends:
    """Values between consecutive samples, oldest first."""

    last: Sample | None = None
    commit_s: tuple[float, ...] = ()  # mean time of a commit; no value while nothing is written
    commits: tuple[float, ...] = ()  # a second
    tokens: tuple[float, ...] = ()  # a second
    turns: tuple[float, ...] = ()  # ended, a second
    cpu: tuple[float, ...] = ()  # share of one core, from 0
    lag_s: tuple[float, ...] = ()

    def now(self, name: str) -> float:
        values: tuple[float, ...] = getattr(self, name)
        return values[-1] if values else 0.0


def with_sample(trends: Trends, sample: Sample) -> Trends:
    last = trends.last
    trends = replace(trends, last=sample, lag_s=tuple(sample.loop_lag_s[-MAX_POINTS:]))
    if last is None or not _same_boot(last, sample):
        return trends
    passed_s = sample.at - last.at
    if passed_s <= 0:
        return trends
    commits = sample.commits - last.commits
    took_s = (sample.commits_took_s - last.commits_took_s) / commits if commits else None
    return replace(
        trends,
        commit_s=trends.commit_s if took_s is None else _added(trends.commit_s, took_s),
        commits=_added(trends.commits, commits / passed_s),
        tokens=_added(trends.tokens, (sample.usage.tokens - last.usage.tokens) / passed_s),
        turns=_added(trends.turns, (sum(sample.turns_ended.values()) - sum(last.turns_ended.values())) / passed_s),
        cpu=_added(trends.cpu, (sample.cpu_s - last.cpu_s) / passed_s),
    )


def _same_boot(last: Sample, sample: Sample) -> bool:
    """Counters begin at zero with each start of the daemon."""
    return sample.uptime_s >= last.uptime_s and sample.commits >= last.commits and sample.cpu_s >= last.cpu_s


def _added(values: tuple[float, ...], value: float) -> tuple[float, ...]:
    return (*values, max(0.0, value))[-MAX_POINTS:]


def graph(values: Sequence[float], width: int, *, ascii_only: bool = False) -> str:
    """Return the last values as bars from zero to their maximum, right-aligned."""
    bars = _ASCII_BARS if ascii_only else _BARS
    shown = values[-width:]
    most = max(shown, default=0.0)
    drawn = (bars[0 if most <= 0 else min(len(bars) - 1, int(value / most * len(bars)))] for value in shown)
    return "".join(drawn).rjust(width)
