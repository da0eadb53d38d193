"""Steady load for a while: memory and open files must not grow.

Thirty clients run plain turns, streams and tool calls, leave in the middle of answers, and begin new sessions. After
a first quarter that warms up, memory and descriptors are sampled; growth is the difference of the medians of the last
and the first quarter of the samples. `make soak` takes half an hour.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import statistics
import sys
import time

from bench.drive import closed_loop, text
from bench.harness import Served, daemon, descriptors, memory_mb, scratch, server
from bench.wire import Connection, turn

SHORT_S, LONG_S = 20.0, 1800.0
SAMPLE_EVERY_S = 0.5
WORKERS = 30
PAUSE_S = 0.1  # leaves the machine about half idle
TURNS_A_SESSION = 20
_KINDS = (("", False), ("", True), ("tokens=5 rate=100", True), ("tool", False), ("leave", True))


def run(seconds: float = SHORT_S) -> dict[str, float]:
    with scratch() as folder, server("bench.model") as model:
        (folder / "note.txt").write_text("what the tool reads\n")
        with daemon(folder / "h", model.address, config="sessions: {idle_after_s: 5}\n") as hermes:
            return asyncio.run(_soak(hermes, seconds))


async def _soak(hermes: Served, seconds: float) -> dict[str, float]:
    until = time.monotonic() + seconds
    turns = itertools.count()
    workers = [asyncio.create_task(_talk(hermes, number, until, turns)) for number in range(WORKERS)]
    await asyncio.sleep(seconds / 4)
    samples: list[tuple[float, int]] = []
    while time.monotonic() < until:
        samples.append((memory_mb(hermes.pid, "RssAnon"), descriptors(hermes.pid)))
        await asyncio.sleep(SAMPLE_EVERY_S)
    await asyncio.gather(*workers)
    quarter = max(1, len(samples) // 4)
    (mb, files), (mb_late, files_late) = (
        [statistics.median(column) for column in zip(*part, strict=True)]
        for part in (samples[:quarter], samples[-quarter:])
    )
    return {
        "minutes": seconds / 60,
        "turns": next(turns),
        "memory_end_mb": mb_late,
        "memory_growth_mb": mb_late - mb,
        "descriptors_end": files_late,
        "descriptor_growth": files_late - files,
    }


async def _talk(hermes: Served, worker: int, until: float, turns: itertools.count[int]) -> None:
    for number in itertools.count():
        if time.monotonic() >= until:
            return
        next(turns)
        name = f"soak-{worker}-{number // TURNS_A_SESSION}"
        wish, stream = _KINDS[(worker + number) % len(_KINDS)]
        if wish == "leave":
            await _leave(hermes, name)
        else:
            await closed_loop(hermes, [name], wish=wish, stream=stream)
        await asyncio.sleep(PAUSE_S)


async def _leave(hermes: Served, name: str) -> None:
    """Ask for a stream and close the connection in the middle."""
    connection = await Connection.open(hermes.address)
    answer = connection.send(turn(hermes.key, stream=True)(name, text("tokens=10 rate=50")))
    await asyncio.sleep(0.1)
    connection.close()
    await asyncio.gather(answer, return_exceptions=True)


if __name__ == "__main__":
    print(json.dumps(run(float(sys.argv[1]) if sys.argv[1:] else LONG_S), indent=2))
