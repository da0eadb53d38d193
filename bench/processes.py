"""Cost of supervising 1,000 background processes, with real shims, commands, actors and store.

The commands sleep. The CPU time is that of this process, which does the work of the daemon: one sample of the machine
every five seconds, a heartbeat from each actor to the directory, and sometimes the listening ports. The CPU time of
the shims is separate.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from loguru import logger

from hermes.actors.journal import ActorJournal
from hermes.actors.process.process_registry import ProcessRegistry
from hermes.actors.process.process_services import HostThreads, ProcessSettings
from hermes.actors.process.process_supervisor import StartProcess
from hermes.app.actor_system import DELIVERY, RESETS, assemble
from hermes.app.actor_system import PROCESSES as SUPERVISOR
from hermes.app.host.os_process import raise_descriptor_limit
from hermes.domain.ids import Seq, SessionId, SessionKey
from hermes.domain.process.process import Handle
from hermes.domain.session.state import Phase, Session
from hermes.ports.processes import ProcessOrder
from hermes.processes.host import LinuxProcessHost
from hermes.processes.shim.member import look_at
from hermes.processes.table import TICKS_PER_S
from hermes.storage.lmdb_engine import LmdbEngine
from tests.processes.stage import ProcessFixture
from tests.support.actor_system import counting_ids, make_ports, make_settings, start_actors

PROCESSES = 1000
AT_ONCE = 8
HEARTBEAT_S = 5.0
BEATS = 8  # two of them also read the listening ports
_SESSION = Session(
    id=SessionId("bench"),
    key=SessionKey("bench"),
    phase=Phase.IDLE,
    reason="",
    since=0,
    created_at=0,
    active_at=0,
    next_seq=Seq(1),
    platform="cli",
)


def run() -> dict[str, float]:
    raise_descriptor_limit()
    logger.disable("hermes")  # it logs two lines per process
    with tempfile.TemporaryDirectory(prefix="hermes-bench-", dir=Path.cwd()) as folder:
        return asyncio.run(_measure(Path(folder)))


async def _measure(folder: Path) -> dict[str, float]:
    engine = LmdbEngine.open(folder / "store")
    journal = ActorJournal(engine, on_fatal=_fail)
    host, threads, board = ProcessFixture(folder / "processes"), HostThreads(), ProcessRegistry()
    settings = ProcessSettings(max_per_session=PROCESSES, max_total=PROCESSES, heartbeat_s=HEARTBEAT_S)
    ids = iter(range(PROCESSES))
    ports = make_ports(
        journal,
        time.time,
        host=host,
        threads=threads,
        registry=board,
        steady=time.monotonic,
        pulse=time.monotonic,
        ids=replace(counting_ids(), process=lambda: f"proc_{next(ids):012x}"),
    )
    system = assemble(ports, make_settings(processes=settings))
    await start_actors(system, None, without={DELIVERY, RESETS})
    try:
        began = time.perf_counter()
        await _start_all(system.children[SUPERVISOR])
        started_s = time.perf_counter() - began
        while any(row.heartbeats < 8 for row in board):  # the first samples also read the ports  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        handles = [row.handle for row in board if row.handle is not None]
        shims = await asyncio.to_thread(_shim_ticks, handles)
        cpu, wall = time.process_time(), time.perf_counter()
        await asyncio.sleep(BEATS * HEARTBEAT_S)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        shims = await asyncio.to_thread(_shim_ticks, handles) - shims
        fresh = sum(time.time() - view.heartbeat_at < 2 * HEARTBEAT_S for view in system.processes.views())
        look_s = await asyncio.to_thread(_one_look, host, handles)
    finally:
        await threads.call(lambda: _kill_all(host, board))
        await system.stop()
        await threads.close()
        await journal.close()
        engine.close()
    return {
        "live": fresh,
        "start_1k_s": started_s,
        "core_percent": 100 * cpu / wall,
        "look_all_1k_ms": 1000 * look_s,
        "shims_core_percent": 100 * shims / TICKS_PER_S / wall,
    }


async def _start_all(supervisor: Any) -> None:
    order = ProcessOrder(
        session=_SESSION.id,
        command="sleep 3600",
        argv=("sleep", "3600"),
        cwd="/",
        environ={"PATH": os.environ["PATH"]},
    )
    for _ in range(0, PROCESSES, AT_ONCE):
        asked = [
            supervisor.ask(StartProcess(order=order, session=_SESSION, root=_SESSION.id), block=False)
            for _ in range(AT_ONCE)
        ]
        for each in asked:
            await each


def _shim_ticks(handles: Iterable[Handle]) -> int:
    members = (look_at(handle.shim_pid) for handle in handles)
    return sum(member.cpu for member in members if member is not None)


def _one_look(host: LinuxProcessHost, handles: list[Handle]) -> float:
    began = time.thread_time()
    host.look_all(handles)
    return time.thread_time() - began


def _kill_all(host: ProcessFixture, board: ProcessRegistry) -> None:
    handles = [row.handle for row in board if row.handle is not None]
    for handle in handles:
        host.kill(handle, 0)
    for handle in handles:
        host.wait(handle, 10)


def _fail(*_: object) -> NoReturn:
    raise AssertionError("nothing of this happens here")


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
