"""Figures in bench/README.md: the part between two comments, which `make bench` and `make peers` write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from bench.budgets import BUDGETS, Budget

_KINDS = ("plain", "streamed", "tool")
_CROWDS = ("load.{}_at_1", "load.{}_at_8", "load.{}_at_64", "crowd.{}_at_500")
_AGES = ("history.{}_at_20", "history.{}_at_200", "history.{}_at_2000", "history.{}_at_20000")


def _each(patterns: tuple[str, ...], *names: str) -> list[str]:
    return [pattern.format(name) for name in names for pattern in patterns]


_SHOWN = {
    "a turn, plain, streamed and with a tool call: CPU, ms": _each(("turns.{}_cpu_ms",), *_KINDS),
    "the same: latency p50, ms": _each(("turns.{}_p50_ms",), *_KINDS),
    "the same: latency p99, ms": _each(("turns.{}_p99_ms",), *_KINDS),
    "the bare proxy: CPU, latency p50, ms": ["turns.bare_cpu_ms", "turns.bare_p50_ms"],
    "turns per second with 1, 8, 64 and 500 sessions": _each(_CROWDS, "turns_per_s"),
    "the same: CPU of a turn, ms": _each(_CROWDS, "cpu_ms"),
    "the same: CPU of a turn to the bare proxy": _each(_CROWDS, "cpu_to_bare"),
    "a turn at message 20, 200, 2,000 and 20,000: CPU, ms": _each(_AGES, "cpu_ms"),
    "the bare proxy with a body of that size: CPU, ms": _each(_AGES, "bare_cpu_ms"),
    "latency p50 added to the bare proxy's there, ms": _each(_AGES, "added_p50_ms"),
    "500 streams: CPU of a token, µs": ["crowd.streams_cpu_us_per_token"],
    "overload: peak and answers per second, share refused": _each(
        ("crowd.{}",), "peak_per_s", "overload_per_s", "overload_refused"
    ),
    "10,000 sessions awake, asleep, MB": _each(("memory.{}_10k_mb",), "awake", "asleep"),
    "the same without pages of the store, MB": _each(("memory.{}_10k_without_store_mb",), "awake", "asleep"),
    "one of them in memory, on disk, KB": ["memory.awake_kb_per_session", "memory.disk_kb_per_session"],
    "one wakes up: latency p50 with 64 at a time, CPU, ms": ["memory.wake_p50_ms", "memory.wake_cpu_ms"],
    "start with 0, 100,000 and 1,000,000 sessions, s": _each(("daemon.ready_{}_s",), "empty", "100k", "1m"),
    "CPU of `hermes --version`, `hermes ps`, `python -c pass`, ms": _each(
        ("startup.{}_ms",), "version", "ps", "python"
    ),
    "durable appends per second: Hermes, raw LMDB": ["storage.appends_per_s_grouped", "storage.raw_lmdb_per_s"],
    "the same: CPU, µs": ["storage.cpu_us_per_append", "storage.raw_lmdb_cpu_us"],
    "tells per second: actors, sessions, threads": [
        "actors.tells_per_s",
        "sessions.tells_per_s",
        "actors.threading_tells_per_s",
    ],
    "a command without the sandbox, in it, with the network, ms": _each(
        ("sandbox.{}_p50_ms",), "plain", "sandbox", "network"
    ),
    "approval of an everyday command: p50, p95, µs": _each(("approvals.everyday_{}_us",), "p50", "p95"),
}

README = Path(__file__).with_name("README.md")


def put(part: str, lines: Iterable[str], page: Path = README) -> None:
    """Replace the lines between `<!-- part -->` and `<!-- end of part -->`."""
    begin, end = f"<!-- {part} -->", f"<!-- end of {part} -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, found, after = rest.partition(end)
    assert found, f"{page.name} has no place for {part}"
    page.write_text("\n".join([before + begin, "", *lines, "", end]) + after, encoding="utf-8")


def budget_table(figures: Mapping[str, float], when: str) -> list[str]:
    rows = [_budget(budget, figures) for budget in BUDGETS if budget.figure in figures]
    return [when, "", "| Budget | Limit | Measured |", "|---|---|---|", *rows]


def _budget(budget: Budget, figures: Mapping[str, float]) -> str:
    measured = shown(figures[budget.figure])
    if not budget.kept(figures):
        measured = f"**{measured}**"
    return f"| {budget.what} | {'≤' if budget.at_most else '≥'} {budget.limit:g} | {measured} |"


def figure_table(figures: Mapping[str, float]) -> list[str]:
    """Return a table of figures without a budget."""
    rows = [
        f"| {what} | {', '.join(shown(figures[name]) for name in names)} |"
        for what, names in _SHOWN.items()
        if figures.keys() >= set(names)
    ]
    return ["| Figure | Measured |", "|---|---|", *rows]


def shown(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
