"""Short form of the bench for CI: ratios that depend on the code more than on the machine. Exits 1 on a regression.

Processor time and memory, never elapsed time; rounds of both sides alternate, and the best of each side counts. So a
machine that is busy or stalls changes little. The limits leave room: about twice of what a quiet machine measures.

    python -m bench.ratios      # about half a minute
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from bench.budgets import Budget
from bench.drive import closed_loop
from bench.fill import fill, session_id
from bench.harness import Served, cpu_s, daemon, memory_mb, scratch, server
from bench.startup import shortest

LIMITS = (
    Budget(what="plain turn at 16 sessions: CPU / bare proxy", figure="turn_to_bare", limit=12),
    Budget(what="turn at message 2,000: CPU / at message 20", figure="late_to_early", limit=2),
    Budget(what="hermes --version: CPU / python -c pass", figure="version_to_python", limit=4),
    Budget(what="start of the daemon: CPU / python -c pass", figure="start_to_python", limit=70),
    Budget(what="idle memory, MB", figure="idle_mb", limit=52),  # 50 in `make bench`; other machines differ a little
    Budget(what="awake session of 20 messages, KB", figure="awake_kb", limit=18),
    Budget(what="start: store pages per stored session, KB", figure="stored_kb", limit=0.3),
    Budget(what="start: CPU per stored session, µs", figure="stored_us", limit=10),
)
ROUNDS = 5
SESSIONS, TURNS = 16, 10
AWAKE = 600
STORED = 20_000
_PYTHON = (sys.executable, "-c", "pass")
_VERSION = (sys.executable, "-m", "hermes.cli.main", "--version")


def measure() -> dict[str, float]:
    python_s, version_s = shortest([_PYTHON, _VERSION], dict(os.environ), runs=10)
    figures = {"version_to_python": version_s / python_s}
    with scratch() as folder:
        figures |= _starts(folder, python_s) | _turns(folder)
    return figures


def _starts(folder: Path, python_s: float) -> dict[str, float]:
    empty, full = folder / "empty", folder / "full"
    _started(empty), _started(full)
    fill(full, STORED)
    _started(full)
    rounds = [(_started(empty), _started(full)) for _ in range(ROUNDS)]
    cpu_empty, cpu_full = (min(each[side][0] for each in rounds) for side in (0, 1))
    pages_empty, pages_full = (min(each[side][1] for each in rounds) for side in (0, 1))
    return {
        "idle_mb": min(empty[2] for empty, _ in rounds),
        "start_to_python": cpu_empty / python_s,
        "stored_us": (cpu_full - cpu_empty) / STORED * 1e6,
        "stored_kb": (pages_full - pages_empty) / STORED * 1024,
    }


def _started(home: Path) -> tuple[float, float, float]:
    """Return processor time, memory backed by files, and all memory of a daemon that has just become ready."""
    with daemon(home) as hermes:
        return cpu_s(hermes.pid), memory_mb(hermes.pid, "RssFile"), memory_mb(hermes.pid)


def _turns(folder: Path) -> dict[str, float]:
    home = folder / "turns"
    fill(home, AWAKE, turns=9)
    fill(home, 1, first=AWAKE, turns=1000)
    with (
        server("bench.model") as model,
        server("bench.load", "proxy", model.address) as bare,
        daemon(home, model.address) as hermes,
    ):
        return asyncio.run(_measure_turns(hermes, bare))


async def _measure_turns(hermes: Served, bare: Served) -> dict[str, float]:
    names = [f"ratio-{number}" for number in range(SESSIONS)]
    await closed_loop(hermes, names, turns=5)
    await closed_loop(bare, names, turns=5)
    ours, proxied, early, late = [], [], [], []
    for _ in range(ROUNDS):
        ours.append((await closed_loop(hermes, names, turns=TURNS)).cpu_ms)
        proxied.append((await closed_loop(bare, names, turns=2 * TURNS)).cpu_ms)
        early.append((await closed_loop(hermes, ["early"], turns=10)).cpu_ms)
        late.append((await closed_loop(hermes, [session_id(AWAKE)], turns=10)).cpu_ms)
    before = memory_mb(hermes.pid, "RssAnon")
    await closed_loop(hermes, [session_id(number) for number in range(AWAKE)], workers=SESSIONS)
    return {
        "turn_to_bare": min(ours) / min(proxied),
        "late_to_early": min(late) / min(early),
        "awake_kb": (memory_mb(hermes.pid, "RssAnon") - before) / AWAKE * 1024,
    }


def main() -> int:
    figures = measure()
    for limit in LIMITS:
        verdict = "ok" if limit.kept(figures) else "REGRESSION"
        print(f"{limit.what:48} {figures[limit.figure]:8.3g}   limit {limit.limit:g}   {verdict}")
    return 0 if all(limit.kept(figures) for limit in LIMITS) else 1


if __name__ == "__main__":
    sys.exit(main())
