"""Header of the live view: figures of the daemon and their small graphs, as lines of text. Pure."""

from __future__ import annotations

from hermes.domain.text.listing import counted
from hermes.tui.top import words
from hermes.tui.top.sample import Sample
from hermes.tui.top.trend import Trends, graph

MIN_GRAPH = 8
MAX_GRAPH = 30
_PAIR = 2  # figures with a graph share a line


def lines(trends: Trends, width: int, *, problem: str = "", ascii_only: bool = False) -> list[str]:
    """Return four lines, each at most `width` long. `problem`: why there is no new sample."""
    sample = trends.last
    if sample is None:
        return [problem or "Connecting to the daemon …", "", "", ""]
    state = problem or ("ready" if sample.ready else f"not ready: {sample.reason}")
    first = (
        f"hermes {sample.version}  up {words.age(sample.uptime_s)}  CPU {_cpu(sample, trends) * 100:.1f} %  "
        f"{words.size(sample.memory_bytes)}  {state}"
    )
    room = max(MIN_GRAPH, min(MAX_GRAPH, width // _PAIR - 28))
    return [line[:width] for line in (first, _counts(sample), *_graphs(sample, trends, room, ascii_only=ascii_only))]


def _cpu(sample: Sample, trends: Trends) -> float:
    """Return the share of one core since the last sample, or since the start."""
    return trends.now("cpu") if trends.cpu else sample.cpu_s / max(sample.uptime_s, 1.0)


def _counts(sample: Sample) -> str:
    live = sum(sample.phases.values())
    ended = sample.turns_ended
    failed = sum(ended.values()) - ended.get("answered", 0)
    calling = f" ({sample.turns_calling} in a model call)" if sample.turns_running else ""
    parts = (
        f"{counted(sample.sessions_stored, 'session', 'sessions')}, {live} live",
        f"{sample.phases.get('waiting', 0)} waiting",
        f"{sample.turns_running} running{calling}",
        f"{ended.get('answered', 0)} answered, {failed} failed",
        *([f"outbox {sample.outbox}"] if sample.outbox else []),
        *([f"{sample.dead_letters} dead letters"] if sample.dead_letters else []),
    )
    return "  ".join(parts)


def _graphs(sample: Sample, trends: Trends, room: int, *, ascii_only: bool) -> tuple[str, str]:
    def pair(*figures: tuple[str, str, tuple[float, ...]]) -> str:
        return "  ".join(
            f"{name:<6} {text:<17} {graph(values, room, ascii_only=ascii_only)}" for name, text, values in figures
        )

    used = sample.usage
    mean_s = trends.now("commit_s") or sample.commits_took_s / max(sample.commits, 1)
    worst_s = max(sample.loop_lag_s[-10:], default=0.0)
    cost = f" {words.money(used.cost_usd)}" if used.cost_usd else ""
    return (
        pair(
            ("commit", f"{words.took(mean_s)} {trends.now('commits'):.0f}/s", trends.commit_s),
            ("lag", f"{words.took(worst_s)} worst", trends.lag_s),
        ),
        pair(
            ("tokens", f"{words.number(trends.now('tokens'))}/s {words.number(used.tokens)}{cost}", trends.tokens),
            ("turns", f"{trends.now('turns'):.1f}/s", trends.turns),
        ),
    )
