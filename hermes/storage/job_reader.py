"""Reads of scheduled jobs. A damaged job is logged and left out of lists."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import islice, takewhile

from loguru import logger

from hermes.domain.job.job import Job, JobRun
from hermes.storage import codec
from hermes.storage.codec import DamagedError, UnreadableError
from hermes.storage.env import StoreView
from hermes.storage.row_keys import JOB_DUE, JOB_RUNS, JOBS, due_of, prefix_of, session_of_recent, subject_key
from hermes.storage.staged_jobs import read_job, run_key


class JobReader:
    def _view(self) -> AbstractContextManager[StoreView]:
        raise NotImplementedError

    def job(self, job: str) -> Job | None:
        key = subject_key(job)
        with self._view() as view:
            value = view.get(JOBS, key)
        return None if value is None else read_job(key, value)[1]

    def jobs(self, limit: int, after: str = "") -> list[Job]:
        start = subject_key(after) + b"\0" if after else b""
        with self._view() as view:
            found = list(islice(view.scan(JOBS, start=start), limit))
        return list(_readable(found))

    def job_count(self) -> int:
        with self._view() as view:
            return view.count(JOBS)

    def jobs_due(self, before: float, limit: int) -> list[Job]:
        with self._view() as view:
            places = (key for key, _ in view.scan(JOB_DUE))
            keys = [
                session_of_recent(key) for key in islice(takewhile(lambda key: due_of(key) <= before, places), limit)
            ]
            found = [(key, value) for key in keys if (value := view.get(JOBS, key)) is not None]
        return list(_readable(found))

    def next_job_due(self) -> float | None:
        with self._view() as view:
            place = next(view.scan(JOB_DUE), None)
        return None if place is None else due_of(place[0])

    def job_run(self, job: str, number: int) -> JobRun | None:
        key = run_key(subject_key(job), number)
        with self._view() as view:
            value = view.get(JOB_RUNS, key)
        return None if value is None else codec.open_as(JobRun, key, value)

    def job_runs(self, job: str, limit: int, before: int | None = None) -> list[JobRun]:
        key = subject_key(job)
        end = None if before is None else run_key(key, before)
        with self._view() as view:
            found = [pair for pair in view.scan(JOB_RUNS, prefix_of(key)) if end is None or pair[0] < end]
        runs = (_run(place, value) for place, value in reversed(found))
        return list(islice((run for run in runs if run is not None), limit))


def _readable(found: list[tuple[bytes, bytes]]) -> Iterator[Job]:
    for key, value in found:
        try:
            yield read_job(key, value)[1]
        except (DamagedError, UnreadableError) as error:
            logger.error(
                "storage: the job {} cannot be read and is left out: {}", key.decode(errors="replace"), error
            )


def _run(key: bytes, value: bytes) -> JobRun | None:
    try:
        return codec.open_as(JobRun, key, value)
    except (DamagedError, UnreadableError) as error:
        logger.error("storage: a run of a job cannot be read and is left out: {}", error)
        return None
