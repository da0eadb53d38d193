"""Startup time and idle memory of the daemon: with an empty store, as the store grows to 1,000,000 sessions, and with
1,000 open turns after a kill.
"""

from __future__ import annotations

import compileall
import json
import statistics
import time
from pathlib import Path

from bench.fill import fill
from bench.harness import ROOT, cpu_s, daemon, memory_mb, scratch

STORED = (100_000, 1_000_000)
STARTS = 5
PENDING = 1000
IDLE_S = 1.0


def run() -> dict[str, float]:
    compileall.compile_dir(str(ROOT / "hermes"), quiet=1)
    figures: dict[str, float] = {}
    with scratch() as folder:
        empty, full = folder / "e", folder / "f"
        for home in (empty, full):
            _start(home)  # creates the home
        stored = 0
        for sessions in STORED:
            fill(full, sessions - stored, first=stored)
            stored = sessions
            _start(full)  # warms the page cache
            pairs = [(_start(empty), _start(full)) for _ in range(STARTS)]
            figures |= _compared(pairs, _name(sessions))
        pending = [_start_with_pending(full, round_) for round_ in range(STARTS // 2)]
    return figures | {"ready_1k_pending_s": statistics.median(pending)}


def _name(sessions: int) -> str:
    return f"{sessions // 1000}k" if sessions < 1_000_000 else f"{sessions // 1_000_000}m"


def _compared(
    pairs: list[tuple[tuple[float, float, float], tuple[float, float, float]]], name: str
) -> dict[str, float]:
    """Return the figures of the full store, and what they are more than those of the empty one in the same rounds."""
    ready, cpu, memory = ([(empty[n], full[n]) for empty, full in pairs] for n in range(3))
    return {
        "ready_empty_s": statistics.median(empty for empty, _ in ready),
        f"ready_{name}_s": statistics.median(full for _, full in ready),
        f"ready_{name}_more_ms": statistics.median(full - empty for empty, full in ready) * 1000,
        f"start_cpu_{name}_more_ms": (min(full for _, full in cpu) - min(empty for empty, _ in cpu)) * 1000,
        "idle_rss_mb": max(empty for empty, _ in memory),
        f"idle_rss_{name}_more_mb": statistics.median(full - empty for empty, full in memory),
    }


def _start_with_pending(home: Path, round_: int) -> float:
    """Return the startup time after a kill: 1,000 new sessions have an open turn."""
    fill(home, PENDING, first=STORED[-1] + round_ * PENDING, pending=True)
    return _start(home)[0]


def _start(home: Path) -> tuple[float, float, float]:
    """Return the seconds from exec to ready; processor time and resident MB a second later."""
    began = time.perf_counter()
    with daemon(home) as hermes:
        took = time.perf_counter() - began
        time.sleep(IDLE_S)  # after the last steps of the start
        return took, cpu_s(hermes.pid), memory_mb(hermes.pid)


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
