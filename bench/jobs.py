"""Scheduled jobs: cost of 100,000 stored ones for a start and at rest, and 1,000 that are due in the same second."""

from __future__ import annotations

import compileall
import json
import statistics
import time
from pathlib import Path

from bench.harness import ROOT, cpu_s, daemon, memory_mb, scratch, server
from hermes.domain.access.role import Role
from hermes.domain.child.child import Purpose
from hermes.domain.job.job import Job
from hermes.domain.job.schedule import Schedule, ScheduleKind
from hermes.domain.operations import PutJob
from hermes.domain.source import Source
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.storage.lmdb_reader import open_reader

STORED = 100_000
DUE = 1000
STARTS = 5
IDLE_S = 15.0
AHEAD_S = 8.0  # from the writing of the due jobs to their time: a start fits in
DONE_S = 60.0
_BATCH = 5000
_MONTH_S = 30 * 86_400.0
_CONFIG = f"cron: {{max_parallel_jobs: {DUE}}}\nturns: {{max_concurrent: {DUE}}}\n"


def run() -> dict[str, float]:
    compileall.compile_dir(str(ROOT / "hermes"), quiet=1)
    with scratch() as folder:
        empty, full = folder / "e", folder / "f"
        for home in (empty, full):
            _start(home, 0)
        fill(full, STORED, due=time.time() + _MONTH_S)
        _start(full, 0)  # warms the page cache
        pairs = [(_start(empty, 0), _start(full, 0)) for _ in range(STARTS)]
        idle_empty, idle_full = _start(empty, IDLE_S)[1], _start(full, IDLE_S)[1]
        figures = {
            "ready_empty_s": statistics.median(one[0] for one, _ in pairs),
            "ready_100k_s": statistics.median(other[0] for _, other in pairs),
            "idle_percent": 100 * idle_full / IDLE_S,
            "idle_more_percent": 100 * max(idle_full - idle_empty, 0.0) / IDLE_S,
            "rss_more_mb": statistics.median(other[2] - one[2] for one, other in pairs),
        }
        figures["ready_ratio"] = figures["ready_100k_s"] / figures["ready_empty_s"]
        return figures | _due_together(full)


def _due_together(home: Path) -> dict[str, float]:
    """Return when the last of the due jobs was taken, and when its session began."""
    due = time.time() + AHEAD_S
    fill(home, DUE, due=due, first=STORED)
    with server("bench.model") as model, daemon(home, model.address, config=_CONFIG) as hermes:
        late = time.time() - due
        assert late < 0, f"the start took until {late:.1f} s after the jobs were due"
        deadline = time.monotonic() + DONE_S
        while time.monotonic() < deadline:
            time.sleep(1)
            began, sessions, done = _begun(home)
            if done == DUE:
                break
        assert len(began) == len(sessions) == done == DUE, (len(began), len(sessions), done)
        used = cpu_s(hermes.pid)
    return {
        "due_1k_taken_s": max(began) - due,
        "due_1k_begun_s": max(sessions) - due,
        "due_1k_cpu_s": used,
    }


def _begun(home: Path) -> tuple[list[float], list[float], int]:
    with open_reader(home / "store") as reader:
        assert reader is not None
        runs = [run for job in reader.jobs(DUE, _name(STORED - 1)) for run in reader.job_runs(job.id, 1)]
        heads = (head for head in reader.recent(2 * DUE) if head.assignment is not None)
        began = [head.created_at for head in heads if head.assignment and head.assignment.purpose is Purpose.JOB]
    return [run.began_at for run in runs], began, sum(run.state.ended for run in runs)


def fill(home: Path, jobs: int, *, due: float, first: int = 0) -> None:
    engine = LmdbEngine.open(home / "store")
    try:
        for start in range(first, first + jobs, _BATCH):
            numbers = range(start, min(start + _BATCH, first + jobs))
            engine.commit([(PutJob(job=_job(number, due), due=due),) for number in numbers])
    finally:
        engine.close()


def _name(number: int) -> str:
    return f"{number:012x}"


def _job(number: int, due: float) -> Job:
    return Job(
        id=_name(number),
        name=f"job {number}",
        schedule=Schedule(kind=ScheduleKind.ONCE, text="once", at=due),
        source=Source(platform="cli", role=Role.OWNER),
        prompt="Summarise what has happened since yesterday. [delay=1]",
        next_at=due,
        version=1,
    )


def _start(home: Path, idle_s: float) -> tuple[float, float, float]:
    """Return the seconds from exec to ready, the processor time of an idle period, and resident MB after it."""
    began = time.perf_counter()
    with daemon(home) as hermes:
        took = time.perf_counter() - began
        time.sleep(1)  # after the last steps of the start
        before = cpu_s(hermes.pid)
        time.sleep(idle_s)
        return took, cpu_s(hermes.pid) - before, memory_mb(hermes.pid)


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
