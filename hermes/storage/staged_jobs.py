"""Scheduled jobs in a write plan: jobs with their place in the list of due ones, and their runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from hermes.domain.errors import SequenceConflictError, UnknownJobError
from hermes.domain.job.job import Job
from hermes.domain.operations import DropJob, PutJob, PutJobRun
from hermes.storage import codec
from hermes.storage.codec import DamagedError, UnreadableError
from hermes.storage.row_keys import (
    JOB_DUE,
    JOB_RUNS,
    JOBS,
    due_key,
    lsn_key,
    prefix_of,
    session_of_recent,
    subject_key,
)
from hermes.storage.stage import StagedWrites


class StagedJobs:
    def __init__(self, stage: StagedWrites, pack: Callable[[object], bytes]) -> None:
        self._stage = stage
        self._pack = pack

    def perform(self, operation: PutJob | DropJob | PutJobRun) -> None:
        match operation:
            case PutJob():
                self._put(operation)
            case DropJob(id=job):
                self._drop(job)
            case PutJobRun():
                self._put_run(operation)
            case _:
                assert_never(operation)

    def _put(self, put: PutJob) -> None:
        key, job = subject_key(put.job.id), put.job
        value = self._stage.get(JOBS, key)
        if value is None and job.version > 1:
            raise UnknownJobError(f"there is no job {job.id} (any more)")
        due, stored = read_job(key, value) if value is not None else (None, None)
        version = 0 if stored is None else stored.version
        if job.version != version + 1:
            raise SequenceConflictError(f"job {job.id} is at version {version}, not {job.version - 1}")
        self._set_due(key, due, put.due)
        self._stage.put(JOBS, key, codec.seal(key, self._pack((put.due, codec.values_of(job)))))

    def _set_due(self, key: bytes, before: float | None, after: float | None) -> None:
        if before is not None:
            self._stage.put(JOB_DUE, due_key(key, before), None)
        if after is not None:
            self._stage.put(JOB_DUE, due_key(key, after), b"")

    def _drop(self, job: str) -> None:
        key = subject_key(job)
        value = self._stage.get(JOBS, key)
        if value is None:
            return
        try:
            self._set_due(key, read_job(key, value)[0], None)
        except (DamagedError, UnreadableError):  # its due time is unknown: search it
            for place, _ in list(self._stage.scan(JOB_DUE)):
                if session_of_recent(place) == key:
                    self._stage.put(JOB_DUE, place, None)
        self._stage.put(JOBS, key, None)
        for place, _ in list(self._stage.scan(JOB_RUNS, prefix_of(key))):
            self._stage.put(JOB_RUNS, place, None)

    def _put_run(self, put: PutJobRun) -> None:
        job = subject_key(put.run.job)
        place = run_key(job, put.run.number)
        self._stage.put(JOB_RUNS, place, codec.seal(place, self._pack(put.run)))
        end = run_key(job, max(put.run.number - put.keep + 1, 0))
        for old, _ in list(self._stage.scan(JOB_RUNS, prefix_of(job))):
            if old < end:
                self._stage.put(JOB_RUNS, old, None)


def run_key(job: bytes, number: int) -> bytes:
    return prefix_of(job) + lsn_key(number)


def read_job(key: bytes, value: bytes) -> tuple[float | None, Job]:
    """Return the due time of a stored job, and the job."""
    payload = codec.unpack(codec.unseal(key, value))
    try:
        due, values = payload
    except (TypeError, ValueError) as error:
        raise UnreadableError("not a job") from error
    return due, codec.build(Job, values)
