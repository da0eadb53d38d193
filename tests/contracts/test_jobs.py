"""What every Engine promises about scheduled jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.domain.errors import HermesError, SequenceConflictError, UnknownJobError
from hermes.domain.job.job import Job, JobRun
from hermes.domain.job.schedule import Schedule, ScheduleKind
from hermes.domain.operations import DropJob, Operation, PutJob, PutJobRun
from hermes.domain.source import Source
from hermes.ports.storage import Engine
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.storage.verify import check
from tests.support.memory_engine import MemoryEngine

NOW = 1_800_000_000.0


@pytest.fixture(params=["lmdb", "memory"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    made: Engine = LmdbEngine.open(tmp_path / "store") if request.param == "lmdb" else MemoryEngine()
    yield made
    made.close()


def job(name: str = "a", version: int = 1) -> Job:
    schedule = Schedule(kind=ScheduleKind.EVERY, text="every 1h", at=NOW, every_s=3600.0)
    return Job(id=name, name=f"job {name}", schedule=schedule, source=Source(platform="cli"), version=version)


def run(number: int, name: str = "a") -> JobRun:
    return JobRun(job=name, number=number, occurrence=f"{name}:{number}", at=NOW, began_at=NOW)


def commit(engine: Engine, *operations: Operation) -> HermesError | None:
    [outcome] = engine.commit([operations])
    return outcome


def test_a_job_comes_back_and_due_jobs_come_in_order(engine: Engine) -> None:
    for name, due in (("b", NOW + 5), ("a", NOW + 10), ("c", None), ("d", NOW + 1)):
        assert commit(engine, PutJob(job=job(name), due=due)) is None
    assert engine.job("a") == job("a")
    assert engine.job("x") is None
    assert [each.id for each in engine.jobs(2)] == ["a", "b"]
    assert [each.id for each in engine.jobs(9, after="b")] == ["c", "d"]
    assert engine.job_count() == 4
    assert [each.id for each in engine.jobs_due(NOW + 5, 9)] == ["d", "b"]
    assert [each.id for each in engine.jobs_due(NOW + 10, 2)] == ["d", "b"]
    assert engine.next_job_due() == NOW + 1


def test_a_change_moves_the_due_time_and_needs_the_version_before(engine: Engine) -> None:
    assert commit(engine, PutJob(job=job(), due=NOW)) is None
    assert commit(engine, PutJob(job=job(version=2), due=NOW + 60)) is None
    assert engine.jobs_due(NOW, 9) == []
    assert engine.next_job_due() == NOW + 60
    for version in (1, 2, 4):
        refused = commit(engine, PutJob(job=job(version=version), due=None), PutJobRun(run=run(1), keep=9))
        assert isinstance(refused, SequenceConflictError)
    assert engine.job_runs("a", 9) == []
    assert isinstance(commit(engine, PutJob(job=job("x", version=2), due=None)), UnknownJobError)


def test_runs_are_kept_up_to_a_number_and_go_with_their_job(engine: Engine) -> None:
    commit(engine, PutJob(job=job("a"), due=NOW), PutJob(job=job("ab"), due=None))
    for number in range(1, 6):
        assert commit(engine, PutJobRun(run=run(number), keep=3), PutJobRun(run=run(number, "ab"), keep=9)) is None
    assert [each.number for each in engine.job_runs("a", 9)] == [5, 4, 3]
    assert [each.number for each in engine.job_runs("a", 1, before=5)] == [4]
    assert engine.job_run("a", 4) == run(4)
    assert engine.job_run("a", 1) is None
    changed = replace(run(4), output="done")
    commit(engine, PutJobRun(run=changed, keep=3))
    assert engine.job_run("a", 4) == changed
    assert commit(engine, DropJob(id="a")) is None
    assert commit(engine, DropJob(id="a")) is None
    assert engine.job("a") is None
    assert engine.job_runs("a", 9) == []
    assert engine.next_job_due() is None
    assert len(engine.job_runs("ab", 9)) == 5


def test_verification_accepts_jobs(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path / "store")
    commit(engine, PutJob(job=job(), due=NOW), PutJobRun(run=run(1), keep=3))
    commit(engine, PutJob(job=job(version=2), due=NOW + 1))
    engine.close()
    assert check(tmp_path / "store") == []
