"""Cost of one turn at a time: plain, streamed and with a tool call, beside a bare proxy in the same run."""

from __future__ import annotations

import asyncio
import json
import statistics

from bench.drive import Load, closed_loop
from bench.harness import Served, daemon, scratch, server

ROUNDS = 4
TURNS = 60
TOKEN_EVERY_S = 0.02


def run() -> dict[str, float]:
    with scratch() as folder, server("bench.model") as model, server("bench.load", "proxy", model.address) as bare:
        (folder / "note.txt").write_text("what the tool reads\n")
        with daemon(folder / "h", model.address) as hermes:
            return asyncio.run(_measure(hermes, bare))


async def _measure(hermes: Served, bare: Served) -> dict[str, float]:
    figures: dict[str, float] = {}
    for kind, wish, stream in (("plain", "", False), ("streamed", "", True), ("tool", "tool", False)):
        await closed_loop(hermes, [f"warm-{kind}"], turns=10, wish=wish, stream=stream)
        ours, proxied = [], []
        for number in range(ROUNDS):
            ours.append(await closed_loop(hermes, [f"{kind}-{number}"], turns=TURNS, wish=wish, stream=stream))
            proxied.append(await closed_loop(bare, ["any"], turns=TURNS))
        figures |= {
            f"{kind}_cpu_ms": _best(ours),
            f"{kind}_cpu_to_bare": statistics.median(a.cpu_ms / b.cpu_ms for a, b in zip(ours, proxied, strict=True)),
            f"{kind}_p50_ms": _median(ours),
            f"{kind}_p99_ms": statistics.median(each.p99_ms for each in ours),
            f"{kind}_added_p50_ms": _median(ours) - _median(proxied),
        }
        if stream:
            figures["streamed_first_p50_ms"] = statistics.median(each.first_p50_ms for each in ours)
    figures |= {"bare_cpu_ms": _best(proxied), "bare_p50_ms": _median(proxied)}
    figures["first_token_added_ms"] = await _first_token(hermes)
    return figures


def _best(loads: list[Load]) -> float:
    return min(each.cpu_ms for each in loads)


def _median(loads: list[Load]) -> float:
    return statistics.median(each.p50_ms for each in loads)


async def _first_token(hermes: Served) -> float:
    """Return what Hermes adds until the first token, when the model takes 0.1 s for it and then goes on slowly."""
    load = await closed_loop(hermes, ["first"], turns=20, wish="delay=0.1 tokens=5 rate=50", stream=True)
    return load.first_p50_ms - 100


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
