"""Cost of session resets with 100,000 stored sessions: real directory, sessions and store, simulated clock.

Measures a check when nothing is due, which runs a few times per minute; a check that finds 1,000 due sessions, until
the last one is reset; and the review of all sessions after a change of the policy.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from loguru import logger

from bench.fill import fill
from hermes.actors.journal import ActorJournal
from hermes.actors.reset.reset_rules import ResetSettings
from hermes.actors.reset.reset_scheduler import REVIEWED, Tick
from hermes.app.actor_system import DELIVERY, PROCESSES, RESETS, assemble
from hermes.domain.ids import SessionId
from hermes.domain.reset_policy import PolicyBook, ResetMode, ResetPolicy
from hermes.storage.lmdb_engine import LmdbEngine
from tests.support.actor_system import make_ports, make_settings, start_actors

STORED = 100_000
IDLE_S = 86400.0
DUE = 1000
LOOKS = 200
_NONE_DUE = STORED / 2  # sessions are one second apart, starting at 0
_SOME_DUE = IDLE_S + DUE - 1


def run() -> dict[str, float]:
    logger.disable("hermes")  # it logs one line per reset
    with tempfile.TemporaryDirectory(prefix="hermes-bench-", dir=Path.cwd()) as folder:
        fill(Path(folder), STORED)
        return asyncio.run(_measure(Path(folder, "store")))


async def _measure(store: Path) -> dict[str, float]:
    engine = LmdbEngine.open(store)
    journal = ActorJournal(engine, on_fatal=_fail)
    now = _NONE_DUE

    def clock() -> float:
        return now

    policy = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=int(IDLE_S / 60))
    ports = make_ports(journal, clock, pulse=time.monotonic)
    resets = ResetSettings(book=PolicyBook(default=policy))
    system = assemble(ports, make_settings(resets=resets))
    began = time.perf_counter()
    await start_actors(system, None, without={DELIVERY, PROCESSES})
    try:
        await _until(lambda: engine.fact(REVIEWED) == system.rules.fingerprint.encode())
        review_s = time.perf_counter() - began
        assert not engine.due(now, 1)

        cpu = time.process_time()
        for _ in range(LOOKS):
            system.children[RESETS].tell(Tick())
            await journal.fetch(lambda reader: reader.due_at(SessionId("nobody")))  # the read of a check
        look_s = (time.process_time() - cpu) / LOOKS

        now = _SOME_DUE
        assert len(engine.due(now, 2 * DUE)) == DUE
        began, cpu = time.perf_counter(), time.process_time()
        system.children[RESETS].tell(Tick())
        await _until(lambda: not engine.due(now, 1))
        reset_s, reset_cpu = time.perf_counter() - began, time.process_time() - cpu
    finally:
        await system.stop()
        await journal.close()
        engine.close()
    return {
        "look_none_due_ms": 1000 * look_s,
        "reset_1k_due_s": reset_s,
        "cpu_us_per_reset": 1e6 * reset_cpu / DUE,
        "review_100k_s": review_s,
    }


async def _until(holds: Callable[[], bool]) -> None:
    while not await asyncio.to_thread(holds):  # noqa: ASYNC110
        await asyncio.sleep(0.005)


def _fail(*_: object) -> NoReturn:
    raise AssertionError("nothing of this happens here")


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
