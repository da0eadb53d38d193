"""Cost of actors: LoopActor compared with pykka's ThreadingActor in one run."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter, sleep
from typing import Any

import pykka

from hermes.actors.kernel.actor import LoopActor, live_actors

ACTORS = 10_000
ROUNDS = 50
THREAD_ROUNDS = 3
ASKS = 50_000


class Idle(LoopActor):
    kind = "idle"

    def on_receive(self, message: object) -> object:
        return message


class Threaded(pykka.ThreadingActor):
    use_daemon_thread = True

    def __init__(self, handled: list[object]) -> None:
        super().__init__()
        self._handled = handled

    def on_receive(self, message: object) -> None:
        self._handled.append(message)


async def _stop(refs: list[pykka.ActorRef[Any]]) -> None:
    for stopped in [ref.stop(block=False) for ref in refs]:
        await stopped


async def _bytes_each() -> float:
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        refs = [Idle.start(name=f"session-{n}") for n in range(ACTORS)]
        await asyncio.gather(*(ref.ask(0, block=False) for ref in refs))
        gc.collect()
        each = (tracemalloc.get_traced_memory()[0] - before) / ACTORS
    finally:
        tracemalloc.stop()
    await _stop(refs)
    return each


async def _loop_actors() -> dict[str, float]:
    began = perf_counter()
    refs = [Idle.start() for _ in range(ACTORS)]
    await refs[-1].ask(0, block=False)
    started = perf_counter()
    for _ in range(ROUNDS):
        for ref in refs:
            ref.tell(0)
        await refs[-1].ask(0, block=False)
    told = perf_counter()
    for _ in range(ASKS):
        await refs[0].ask(0, block=False)
    asked = perf_counter()
    await _stop(refs)
    stopped = perf_counter()
    assert not live_actors()
    return {
        "start_10k_s": started - began,
        "tells_per_s": ACTORS * ROUNDS / (told - started),
        "asks_per_s": ASKS / (asked - told),
        "stop_10k_s": stopped - asked,
    }


def _thread_actors() -> dict[str, float]:
    handled: list[object] = []
    began = perf_counter()
    refs = [Threaded.start(handled) for _ in range(ACTORS)]
    started = perf_counter()
    for told in range(1, THREAD_ROUNDS + 1):
        for ref in refs:
            ref.tell(0)
        while len(handled) < ACTORS * told:
            sleep(0.001)
    took_s = perf_counter() - started
    return {"threading_start_10k_s": started - began, "threading_tells_per_s": ACTORS * THREAD_ROUNDS / took_s}


def run() -> dict[str, float]:
    figures = {"bytes_per_actor": asyncio.run(_bytes_each())}
    figures |= asyncio.run(_loop_actors())
    # In a separate process, which simply exits: stopping ten thousand threads can take minutes.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        figures |= process.submit(_thread_actors).result()
    figures["tell_ratio"] = figures["tells_per_s"] / figures["threading_tells_per_s"]
    return figures


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
