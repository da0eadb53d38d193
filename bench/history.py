"""Cost of a turn as one session grows: processor time and latency from message 20 to message 20,000.

Each model call carries the whole history, as the context window of this model is unlimited. The bare proxy forwards a
body of the same size.
"""

from __future__ import annotations

import asyncio
import json
import statistics

from bench.drive import closed_loop
from bench.fill import fill, session_id
from bench.harness import Served, daemon, scratch, server
from bench.wire import Request, post

MESSAGES = (20, 200, 2_000, 20_000)
ROUNDS = 3
TURNS = 30
_BYTES_A_MESSAGE = 80  # as `fill` writes them, in the middle


def run() -> dict[str, float]:
    with scratch() as folder, server("bench.model") as model, server("bench.load", "proxy", model.address) as bare:
        home = folder / "h"
        for number, messages in enumerate(MESSAGES):
            fill(home, 1, first=number, turns=messages // 2)
        with daemon(home, model.address) as hermes:
            return asyncio.run(_measure(hermes, bare))


async def _measure(hermes: Served, bare: Served) -> dict[str, float]:
    figures: dict[str, float] = {}
    for number, messages in enumerate(MESSAGES):
        first = await closed_loop(hermes, [session_id(number)], wish="")
        rounds = [
            (
                await closed_loop(hermes, [session_id(number)], turns=TURNS),
                await closed_loop(bare, ["any"], turns=TURNS, request=_body(messages * _BYTES_A_MESSAGE)),
            )
            for _ in range(ROUNDS)
        ]
        figures |= {
            f"wake_ms_at_{messages}": first.p50_ms,
            f"cpu_ms_at_{messages}": min(ours.cpu_ms for ours, _ in rounds),
            f"added_p50_ms_at_{messages}": statistics.median(ours.p50_ms - same.p50_ms for ours, same in rounds),
            f"p50_ms_at_{messages}": statistics.median(ours.p50_ms for ours, _ in rounds),
            f"bare_cpu_ms_at_{messages}": min(same.cpu_ms for _, same in rounds),
        }
    first_, last = MESSAGES[0], MESSAGES[-1]
    figures["added_growth_ms"] = figures[f"added_p50_ms_at_{last}"] - figures[f"added_p50_ms_at_{first_}"]
    figures["late_to_early"] = figures[f"cpu_ms_at_{last}"] / figures[f"cpu_ms_at_{first_}"]
    figures["late_to_early_2k"] = figures[f"cpu_ms_at_{MESSAGES[2]}"] / figures[f"cpu_ms_at_{first_}"]
    return figures


def _body(size: int) -> Request:
    said = {"role": "user", "content": "x" * size}
    whole = post("/v1/chat/completions", {"model": "m", "messages": [said]})
    return lambda _session, _text: whole


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
