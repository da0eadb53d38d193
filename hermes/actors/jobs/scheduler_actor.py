"""Scheduler: takes the occurrences of jobs that are due, each exactly once, and starts their runs.

It knows the time of the next due job only, and reads nothing before that time. The decision about a job is pure
(`hermes/domain/job/occurrence.py`). It is stored in one transaction with the run and the duty to start it, which the
child service fulfils. A wall clock can be set, so the scheduler compares it with the steady clock at each look.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from loguru import logger

from hermes.actors.kernel.actor import LoopActor
from hermes.domain.child.child import ChildDuty
from hermes.domain.errors import AlreadySeenError, HermesError, SequenceConflictError, UnknownJobError
from hermes.domain.job.claim import claim, put
from hermes.domain.job.job import Job, JobRunState
from hermes.domain.job.occurrence import Taken, rescheduled, take
from hermes.domain.read.reader import Reader
from hermes.domain.values import dataclass, replace
from hermes.ports.given import Clock
from hermes.ports.job.jobs import JobSettings
from hermes.ports.storage import Journal
from hermes.system.crash_point import reach

LOOK_S: Final = 30.0  # longest time between two looks at the clock
RETRY_S: Final = 10.0  # after an error of the store
PAGE: Final = 500  # due jobs in one read
SET_BACK_S: Final = 60.0  # a clock that was set back by more moves occurrences
_SLICE: Final = 500  # jobs in one slice of a review


@dataclass(frozen=True, slots=True, kw_only=True)
class LookForJobs:
    """Message: jobs have changed, or may be due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """Message to itself: the time of a look has come. `number` is that of the timer."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Message to itself: jobs that are due, and the time of the next one."""

    jobs: tuple[Job, ...]
    next_due: float | None
    unreadable: bool = False  # a job is due and cannot be read


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """Message to itself: a decision is on disk, or was refused."""

    job: Job
    taken: Taken
    duty: ChildDuty | None
    error: HermesError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slice:
    """Message to itself: jobs whose times are counted again."""

    jobs: tuple[Job, ...]


class SchedulerActor(LoopActor):
    kind = "scheduler"

    def __init__(
        self,
        *,
        journal: Journal,
        clock: Clock,
        steady: Clock,
        settings: Callable[[], JobSettings],
        is_open: Callable[[], bool],
        start_runs: Callable[[Sequence[ChildDuty]], None],
        note: Callable[[JobRunState], None] = lambda _: None,
        coming: Callable[[float | None], None] = lambda _: None,
    ) -> None:
        super().__init__()
        self._journal = journal
        self._clock = clock
        self._steady = steady
        self._settings = settings
        self._is_open = is_open  # False: nothing is started, the daemon is not ready or stops
        self._start_runs = start_runs
        self._note = note
        self._coming = coming  # told the time of the next due job
        self._timer = 0  # number of the timer that counts
        self._storing: set[str] = set()  # jobs with a decision on its way to disk
        self._reading = self._again = False
        self._seen_at = clock(), steady()

    def on_start(self) -> None:
        self._look()

    def on_receive(self, message: object) -> None:
        match message:
            case LookForJobs():
                self._look()
            case _Look(number=number):
                if number == self._timer:
                    self._look()
            case _Found():
                self._on_found(message)
            case _Stored():
                self._on_stored(message)
            case _Slice():
                self._on_slice(message)
            case HermesError():
                logger.warning("scheduler: could not read the jobs, trying again: {}", message)
                self._reading = False
                self._set_timer(RETRY_S)
            case _:
                super().on_receive(message)

    # ------------------------------------------------------------ what is due

    def _set_timer(self, delay_s: float) -> None:
        self._timer += 1
        self.tell_later(max(min(delay_s, LOOK_S), 0.0), _Look(number=self._timer))

    def _look(self) -> None:
        self._check_clock()
        if not self._is_open():
            self._set_timer(LOOK_S)
            return
        if self._reading or self._storing:
            self._again = True
            return
        self._reading, self._again = True, False
        now, zone_of = self._clock(), self._settings().zone_of

        def query(reader: Reader) -> _Found:
            first = reader.next_job_due()
            is_due = first is not None and first <= now
            due = tuple(reader.jobs_due(now, PAGE)) if is_due else ()
            for job in due:
                zone_of(job)  # reads a file the first time, which must not happen on the loop
            return _Found(jobs=due, next_due=first, unreadable=is_due and not due)

        self._journal.read(query, lambda found, error: self.tell_self(error or found))

    def _on_found(self, found: _Found) -> None:
        self._reading = False
        self._coming(found.next_due)
        now = self._clock()
        if not found.jobs:
            delay_s = LOOK_S if found.next_due is None else found.next_due - now
            self._wait(RETRY_S if found.unreadable else delay_s)
            return
        for job in found.jobs:
            self._decide(job, now)

    def _wait(self, delay_s: float) -> None:
        if self._again:
            self._look()
        else:
            self._set_timer(delay_s)

    def _decide(self, job: Job, now: float) -> None:
        settings = self._settings()
        taken = take(job, now, settings.zone_of(job), settings.terms)
        self._store(job, taken, now)

    def _store(self, job: Job, taken: Taken, now: float) -> None:
        settings = self._settings()
        operations, duty = claim(job, taken, now, settings.terms, settings.keep_runs)
        self._storing.add(job.id)
        reach("job: about to claim")
        self._journal.commit(
            operations, lambda error: self.tell_self(_Stored(job=job, taken=taken, duty=duty, error=error))
        )

    def _on_stored(self, stored: _Stored) -> None:
        self._storing.discard(stored.job.id)
        match stored.error:
            case None:
                self._begin(stored)
            case AlreadySeenError() if stored.taken.job is not None:  # the clock was set back: it ran before
                logger.info("job {}: its occurrence was taken before and is left out", stored.job.id)
                after = replace(
                    stored.taken.job, running=stored.job.running, runs=stored.job.runs, taken=stored.job.taken
                )
                self._store(stored.job, Taken(job=after), self._clock())
            case SequenceConflictError() | UnknownJobError():
                self._again = True
            case error:
                logger.warning("scheduler: job {} is tried again: {}", stored.job.id, error)
                if not self._storing:
                    self._set_timer(RETRY_S)
                return
        if not self._storing:
            self._look()

    def _begin(self, stored: _Stored) -> None:
        for run in stored.taken.runs:
            if run is not stored.taken.start:
                self._note(run.state)
                logger.info("job {}: run {}: {}, {} occurrences", run.job, run.number, run.state, run.missed)
        if stored.duty is not None:
            reach("job: claimed")
            assert stored.taken.start is not None
            logger.info("job {}: run {} begins: {}", stored.job.id, stored.taken.start.number, stored.duty.child)
            self._start_runs((stored.duty,))

    # ------------------------------------------------------------ a clock that was set back

    def _check_clock(self) -> None:
        wall, steady = self._seen_at
        self._seen_at = self._clock(), self._steady()
        by_s = (self._seen_at[0] - wall) - (self._seen_at[1] - steady)
        if by_s < -SET_BACK_S:
            logger.info("scheduler: the clock was set by {:+.0f} s; the times of all jobs are counted again", by_s)
            self._read_slice("")

    def _read_slice(self, after: str) -> None:
        query = partial(_read_jobs, after=after, zone_of=self._settings().zone_of)
        self._journal.read(query, lambda found, error: self.tell_self(error or found))

    def _on_slice(self, found: _Slice) -> None:
        now, settings = self._clock(), self._settings()
        for job in found.jobs:
            after = rescheduled(job, now, settings.zone_of(job), settings.terms)
            if after.next_at != job.next_at and (job.next_at or 0.0) > now:
                self._journal.commit((put(after, job, settings.terms),), partial(_log_refusal, job.id))
        if len(found.jobs) == _SLICE:
            self._read_slice(found.jobs[-1].id)
        else:
            self.tell_self(LookForJobs())


def _read_jobs(reader: Reader, *, after: str, zone_of: Callable[[Job], object]) -> _Slice:
    jobs = tuple(reader.jobs(_SLICE, after))
    for job in jobs:
        zone_of(job)
    return _Slice(jobs=jobs)


def _log_refusal(job: str, error: HermesError | None) -> None:
    if error is not None and not isinstance(error, SequenceConflictError | UnknownJobError):
        logger.warning("scheduler: could not store the next time of job {}: {}", job, error)
