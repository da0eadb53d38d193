"""Memory of 10,000 sessions of 20 messages: awake, and asleep again; and what one takes on disk.

The sessions are written in bulk with nine turns each. Their tenth turn wakes them.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
import urllib.request
from pathlib import Path

from bench.drive import closed_loop
from bench.fill import fill, session_id
from bench.harness import Served, daemon, memory_mb, scratch, server

SESSIONS = 10_000
TURNS = 9
WORKERS = 64
ASLEEP_WITHIN_S = 60.0


def run(sessions: int = SESSIONS) -> dict[str, float]:
    with scratch() as folder, server("bench.model") as model:
        home = folder / "h"
        fill(home, sessions, turns=TURNS)
        stored_kb = sum(each.stat().st_blocks for each in (home / "store").glob("*")) / 2 / sessions
        with daemon(home, model.address) as hermes:
            figures = asyncio.run(_wake(hermes, sessions))
            _put_to_sleep(hermes, home)
            figures["asleep_10k_mb"] = memory_mb(hermes.pid)
            figures["asleep_10k_without_store_mb"] = memory_mb(hermes.pid, "RssAnon")
    return figures | {"disk_kb_per_session": stored_kb}


async def _wake(hermes: Served, sessions: int) -> dict[str, float]:
    names = [session_id(number) for number in range(sessions)]
    await closed_loop(hermes, [f"warm-{number}" for number in range(WORKERS)])
    before = memory_mb(hermes.pid, "RssAnon")
    load = await closed_loop(hermes, names, workers=WORKERS)
    after = memory_mb(hermes.pid, "RssAnon")
    return {
        "awake_10k_mb": memory_mb(hermes.pid),
        "awake_10k_without_store_mb": after,
        "awake_kb_per_session": (after - before) * 1024 / sessions,
        "wake_p50_ms": load.p50_ms,
        "wake_cpu_ms": load.cpu_ms,
    }


def _put_to_sleep(hermes: Served, home: Path) -> None:
    """Shorten the time until idle sessions leave memory, and wait until all have."""
    (home / "config.yaml").write_text("sessions: {idle_after_s: 1}\n")
    os.kill(hermes.pid, signal.SIGHUP)
    until = time.monotonic() + ASLEEP_WITHIN_S
    while live_sessions(hermes):
        assert time.monotonic() < until, "sessions did not leave memory"
        time.sleep(0.2)
    time.sleep(1)


def live_sessions(hermes: Served) -> int:
    request = urllib.request.Request(f"{hermes.address}/metrics", headers={"Authorization": f"Bearer {hermes.key}"})
    with urllib.request.urlopen(request) as response:
        lines = response.read().decode().splitlines()
    return next(int(float(line.split()[1])) for line in lines if line.startswith("hermes_sessions_live "))


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
