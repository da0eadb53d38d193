"""Many sessions together, with the default limits: 500 at full speed, a slow model, slow streams, overload.

`bench.load` has the throughput of 1, 8 and 64 sessions.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Sequence
from itertools import accumulate, pairwise

from bench.drive import closed_loop, open_loop, text
from bench.harness import Served, daemon, scratch, server
from bench.wire import Connection, Exchange, turn

SESSIONS, TURNS, ROUNDS = 500, 3, 3
SLOW = 1000
STREAMS, TOKENS, RATE = 500, 200, 50
OVERLOAD, SECONDS, WITHIN_S = 5, 6.0, 10.0
SLOTS = 2000  # connections, more than the daemon takes from one address
RECOVERED_WITHIN_S = 60.0


def run() -> dict[str, float]:
    with scratch() as folder, server("bench.model") as model, server("bench.load", "proxy", model.address) as bare:
        with daemon(folder / "a", model.address) as hermes:
            figures = asyncio.run(_throughput(hermes, bare)) | asyncio.run(_slow_model(hermes))
        with daemon(folder / "b", model.address) as hermes:
            figures |= asyncio.run(_slow_streams(hermes))
        with daemon(folder / "c", model.address) as hermes:
            figures |= asyncio.run(_overload(hermes))
    return figures


async def _throughput(hermes: Served, bare: Served) -> dict[str, float]:
    names = [f"crowd-{number}" for number in range(SESSIONS)]
    await closed_loop(hermes, names)
    rounds = [
        (await closed_loop(hermes, names, turns=TURNS), await closed_loop(bare, names, turns=TURNS))
        for _ in range(ROUNDS)
    ]
    ours, proxied = zip(*rounds, strict=True)
    return {
        "turns_per_s_at_500": statistics.median(each.per_s for each in ours),
        "p50_ms_at_500": statistics.median(each.p50_ms for each in ours),
        "p99_ms_at_500": statistics.median(each.p99_ms for each in ours),
        "cpu_ms_at_500": min(each.cpu_ms for each in ours),
        "bare_per_s_at_500": statistics.median(each.per_s for each in proxied),
        "cpu_to_bare_at_500": statistics.median(a.cpu_ms / b.cpu_ms for a, b in rounds),
    }


async def _slow_model(hermes: Served) -> dict[str, float]:
    """Return when all sessions that ask together have their answer from a model that takes one second."""
    load = await closed_loop(hermes, [f"slow-{number}" for number in range(SLOW)], wish="delay=1")
    return {"slow_1k_all_s": max(each.took_s for each in load.exchanges), "slow_1k_p50_s": load.p50_ms / 1000}


async def _slow_streams(hermes: Served) -> dict[str, float]:
    """Return the longest gap between two pieces of a stream, once it has begun."""
    names = [f"stream-{number}" for number in range(STREAMS)]
    load = await closed_loop(hermes, names, wish=f"delay=0.5 tokens={TOKENS} rate={RATE}", stream=True)
    gaps = sorted(_longest_gap_s(each) for each in load.exchanges)
    whole = sum(each.body.count(b"word") for each in load.exchanges)
    assert whole == STREAMS * TOKENS, f"{STREAMS * TOKENS - whole} tokens are missing"
    return {
        "streams_at_once": _at_once(load.exchanges),
        "streams_gap_ms": gaps[-1] * 1000,
        "streams_gap_p50_ms": gaps[len(gaps) // 2] * 1000,
        "streams_late_s": max(each.took_s for each in load.exchanges) - 0.5 - TOKENS / RATE,
        "streams_cpu_us_per_token": load.cpu_ms * 1000 / TOKENS,
    }


def _at_once(exchanges: Sequence[Exchange]) -> int:
    """Return how many streams ran at the same time, at most. The others waited for their turn."""
    changes = sorted([(each.first_at, 1) for each in exchanges] + [(each.ended, -1) for each in exchanges])
    return max(accumulate(change for _, change in changes))


def _longest_gap_s(exchange: Exchange) -> float:
    told = [at for at in exchange.arrivals if at >= exchange.first_at]
    return max((b - a for a, b in pairwise(told)), default=exchange.took_s)


async def _overload(hermes: Served) -> dict[str, float]:
    """Return the answers a second under five times as many requests as it can answer, compared with its best."""
    names = [f"over-{number}" for number in range(SLOTS)]
    await closed_loop(hermes, names, workers=64)
    peak = max([(await closed_loop(hermes, names, workers=64)).per_s for _ in range(3)])
    done = await open_loop(hermes, names, per_s=OVERLOAD * peak, seconds=SECONDS, within_s=WITHIN_S, slots=SLOTS)
    kept = [each for each in done if each is not None]
    good = [each for each in kept if each.status == 200]
    refused = sorted(each.took_s for each in kept if each.status in (429, 503))
    first = min(each.began for each in kept)
    last = max((each.ended for each in good), default=first + SECONDS)
    ended = time.perf_counter()
    while not await _answers(hermes):
        assert time.perf_counter() - ended < RECOVERED_WITHIN_S, "it did not recover from the overload"
    return {
        "peak_per_s": peak,
        "overload_per_s": len(good) / max(SECONDS, last - first),
        "overload_goodput": len(good) / max(SECONDS, last - first) / peak,
        "overload_refused": len(refused) / len(done),
        "overload_unanswered": (len(done) - len(good) - len(refused)) / len(done),
        "overload_refusal_p50_ms": refused[len(refused) // 2] * 1000 if refused else 0.0,
        "overload_recovery_s": time.perf_counter() - ended,
    }


async def _answers(hermes: Served) -> bool:
    """Return whether a turn is answered within a second."""
    try:
        async with asyncio.timeout(1):
            connection = await Connection.open(hermes.address)
            exchange = await connection.send(turn(hermes.key)("after", text()))
    except (TimeoutError, OSError):
        return False
    connection.close()
    return exchange.status == 200


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
