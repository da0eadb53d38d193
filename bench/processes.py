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
from pathlib import Path
from typing import Any, NoReturn, cast

from loguru import logger

from hermes.actors.after_reset import AfterReset
from hermes.actors.directory import SessionDirectory
from hermes.actors.journal import ActorJournal
from hermes.actors.process_registry import ProcessRegistry
from hermes.actors.process_services import HostThreads, NoticeLimit, NoticeSender, ProcessServices, ProcessSettings
from hermes.actors.process_supervisor import ProcessSupervisor, StartProcess
from hermes.actors.reset_rules import ResetRules, ResetSettings
from hermes.app.os_process import raise_descriptor_limit
from hermes.domain.directory.settings import DirectorySettings
from hermes.domain.ids import Seq, SessionId, SessionKey, TurnId
from hermes.domain.process.process import Handle
from hermes.domain.session.protocol import TurnLimits
from hermes.domain.session.state import Phase, Session
from hermes.ports.given import IdSource
from hermes.ports.processes import ProcessOrder
from hermes.processes.host import LinuxProcessHost
from hermes.processes.shim.member import look_at
from hermes.processes.table import TICKS_PER_S
from hermes.services.event_hub import EventHub
from hermes.services.processes import ProcessService
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.supervision.policy import RestartIntensity
from tests.processes.stage import ProcessFixture

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


_DIRECTORY = DirectorySettings(
    idle_after_s=3600.0, max_live=100, limits=TurnLimits(), memory_limit_bytes=0, seen_for_s=86400.0
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
    services = ProcessServices(
        host=host,
        threads=threads,
        courier=NoticeSender(_fail, _fail),
        board=board,
        journal=journal,
        clock=time.time,
        notices=NoticeLimit(),
        settings=lambda: settings,
        new_turn=lambda: TurnId("none"),
        send_heartbeat=lambda heartbeat: directory.tell(heartbeat),  # noqa: PLW0108 - made below
    )
    front = ProcessService(
        supervisor=lambda: supervisor,
        host=host,
        threads=threads,
        board=board,
        journal=journal,
        clock=time.time,
        settings=settings,
    )
    directory = _start_directory(journal, front)
    ids = iter(range(PROCESSES))
    supervisor = ProcessSupervisor.start(
        services, new_id=lambda: f"proc_{next(ids):012x}", restart_policy=RestartIntensity(), name="processes"
    )
    try:
        began = time.perf_counter()
        await _start_all(supervisor)
        started_s = time.perf_counter() - began
        while any(row.heartbeats < 8 for row in board):  # the first samples also read the ports  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        handles = [row.handle for row in board if row.handle is not None]
        shims = await asyncio.to_thread(_shim_ticks, handles)
        cpu, wall = time.process_time(), time.perf_counter()
        await asyncio.sleep(BEATS * HEARTBEAT_S)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        shims = await asyncio.to_thread(_shim_ticks, handles) - shims
        fresh = sum(time.time() - view.heartbeat_at < 2 * HEARTBEAT_S for view in front.views())
        look_s = await asyncio.to_thread(_one_look, host, handles)
    finally:
        await threads.call(lambda: _kill_all(host, board))
        await supervisor.stop(block=False)
        await directory.stop(block=False)
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


def _start_directory(journal: ActorJournal, front: ProcessService) -> Any:
    """The session that started the processes is not in memory: the directory receives its heartbeats."""
    rules = ResetRules(ResetSettings(), processes=front, clock=time.time, steady=time.monotonic, pulse=time.monotonic)
    return SessionDirectory.start(
        settings=_DIRECTORY,
        journal=journal,
        agent=cast("Any", None),
        hub=EventHub(),
        clock=time.time,
        identity=IdSource(session=_fail, turn=_fail),
        restart_policy=RestartIntensity(),
        memory_bytes=lambda: 0,
        resets=rules,
        was_reset=AfterReset(journal=journal, end_process=_fail),
        name="directory",
    )


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
