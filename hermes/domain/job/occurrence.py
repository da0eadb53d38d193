"""Occurrences of a job: what to do when one is due, and when to look again. Pure.

An occurrence has an id, made of the job and its nominal time, so it is taken once. `take` decides about an occurrence
that is due, `finish` about the end of its run. Both return the job as it must be stored with the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from hashlib import blake2b
from typing import Final

from hermes.domain.job.job import Job, JobRun, JobRunState, MissedPolicy, RunCause, RunProblem
from hermes.domain.job.schedule import MAX_COUNTED, CronTimes, count, last_until, next_after, period_s
from hermes.domain.values import dataclass, replace

ON_TIME_S: Final = 60.0  # an occurrence that is found within this time is not late
_MIN_GRACE_S: Final = 120.0
_MAX_GRACE_S: Final = 7200.0
_MAX_RETRY_S: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTerms:
    """Settings that decide about occurrences."""

    zone: tzinfo  # of jobs that name none
    times: CronTimes
    keep_ended_s: float = 7 * 86_400.0  # a job without further occurrences is deleted after this
    retry_delay_s: float = 60.0  # doubled for each further retry


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Decision about a job that is due. The job and the runs are stored in one transaction."""

    job: Job | None  # None: it is deleted
    runs: tuple[JobRun, ...] = ()  # in the order of their numbers
    start: JobRun | None = None  # the one of them to start


def due_time(job: Job, terms: JobTerms) -> float | None:
    """Return when the scheduler must look at the job. None: not before it changes."""
    if job.ended_at is not None:
        return job.ended_at + terms.keep_ended_s
    if job.paused or (job.running and (job.missed is MissedPolicy.ALL or job.next_at is None)):
        return None
    coming = None if job.next_at is None else job.next_at + jitter(job, job.next_at)
    known = [time for time in (coming, job.retry_at) if time is not None]
    return min(known, default=None)


def jitter(job: Job, at: float) -> float:
    """Return the delay of an occurrence: always the same for it, and spread over jobs and occurrences."""
    if job.jitter_s <= 0:
        return 0.0
    drawn = int.from_bytes(blake2b(f"{job.id}:{at:.3f}".encode(), digest_size=6).digest(), "big")
    return job.jitter_s * drawn / 2**48


def take(job: Job, now: float, zone: tzinfo, terms: JobTerms) -> Taken:
    """Decide about a job whose due time has come."""
    if job.ended_at is not None:
        return Taken(job=None)
    if job.retry_at is not None and job.retry_at <= now and not job.running:
        return _retried(job, now)
    at = job.next_at
    if at is None or at + jitter(job, at) > now or job.paused:
        return Taken(job=job)
    if job.missed is MissedPolicy.ALL:
        return Taken(job=job) if job.running else _started(job, at, now, zone, terms)
    return _latest(job, at, now, zone, terms)


def _latest(job: Job, first: float, now: float, zone: tzinfo, terms: JobTerms) -> Taken:
    """Take the last occurrence that is due. The ones before it were missed."""
    times = terms.times
    last = last_until(job.schedule, now, zone, times) or first
    while last > first and last + jitter(job, last) > now:  # it has come, but its delay has not passed
        last = last_until(job.schedule, last - 1e-3, zone, times) or first
    last = max(last, first)
    runs: tuple[JobRun, ...] = ()
    if earlier := count(job.schedule, first, last, zone, times):
        until = last_until(job.schedule, last - 1e-3, zone, times) or first
        job, missed = _noted(job, JobRunState.MISSED, now, first=first, last=until, missed=earlier)
        runs = (missed,)
    if job.running:
        job, noted = _noted(job, JobRunState.OVERLAPPED, now, first=last, last=last)
        return Taken(job=_advanced(job, last, zone, terms, now), runs=(*runs, noted))
    if now - last - jitter(job, last) > _tolerance(job, last, zone, terms):
        job, noted = _noted(job, JobRunState.MISSED, now, first=last, last=last)
        return Taken(job=_advanced(job, last, zone, terms, now), runs=(*runs, noted))
    taken = _started(job, last, now, zone, terms)
    return replace(taken, runs=(*runs, *taken.runs))


def _tolerance(job: Job, at: float, zone: tzinfo, terms: JobTerms) -> float:
    if job.missed is MissedPolicy.SKIP:
        return ON_TIME_S
    if job.grace_s:
        return max(job.grace_s, ON_TIME_S)
    half = period_s(job.schedule, at, zone, terms.times) / 2
    return min(max(half, _MIN_GRACE_S), _MAX_GRACE_S)


def _started(job: Job, at: float, now: float, zone: tzinfo, terms: JobTerms) -> Taken:
    number = job.runs + 1
    late = now - at - jitter(job, at) > ON_TIME_S
    run = JobRun(
        job=job.id,
        number=number,
        occurrence=f"{job.id}:{at:.0f}",
        at=at,
        began_at=now,
        cause=RunCause.LATE if late else RunCause.DUE,
    )
    job = replace(job, runs=number, running=number, taken=job.taken + 1, retry_at=None, attempt=0)
    return Taken(job=_advanced(job, at, zone, terms, now), runs=(run,), start=run)


def _retried(job: Job, now: float) -> Taken:
    number = job.runs + 1
    run = JobRun(
        job=job.id,
        number=number,
        occurrence=f"{job.id}:{job.retry_of:.0f}:{job.attempt}",
        at=job.retry_of,
        began_at=now,
        cause=RunCause.RETRY,
        attempt=job.attempt,
    )
    return Taken(job=replace(job, runs=number, running=number, retry_at=None), runs=(run,), start=run)


def request_id(job: Job, operation: str) -> str:
    """Return the occurrence id of a run that a person asked for."""
    return f"{job.id}:asked:{operation}"


def requested(job: Job, operation: str, now: float) -> Taken:
    """Start a run that a person asked for. It changes no occurrence."""
    number = job.runs + 1
    run = JobRun(
        job=job.id,
        number=number,
        occurrence=request_id(job, operation),
        at=now,
        began_at=now,
        cause=RunCause.MANUAL,
    )
    started = replace(job, runs=number, running=number, ended_at=None, retry_at=None, attempt=0)
    return Taken(job=started, runs=(run,), start=run)


def _noted(
    job: Job, state: JobRunState, now: float, *, first: float, last: float, missed: int = 1
) -> tuple[Job, JobRun]:
    number = job.runs + 1
    run = JobRun(
        job=job.id,
        number=number,
        occurrence=f"{job.id}:{first:.0f}",
        at=first,
        began_at=now,
        ended_at=now,
        state=state,
        missed=missed,
        until=last,
    )
    return replace(job, runs=number), run


def _advanced(job: Job, at: float, zone: tzinfo, terms: JobTerms, now: float) -> Job:
    """Return the job with the occurrence after `at` as its next one."""
    done = 0 < job.repeat <= job.taken
    following = None if done else next_after(job.schedule, at, zone, terms.times)
    job = replace(job, next_at=following, last_at=at)
    return _ended(job, now)


def _ended(job: Job, now: float) -> Job:
    over = job.next_at is None and job.retry_at is None and not job.running
    return replace(job, ended_at=now if over else None)


def finish(job: Job, run: JobRun, now: float, terms: JobTerms) -> Job:
    """Return the job after the end of a run that was started."""
    failed = run.state is JobRunState.FAILED
    job = replace(
        job,
        running=0 if job.running == run.number else job.running,
        last_state=run.state,
        last_problem=run.problem,
        last_run_at=now,
        failures=job.failures + 1 if failed else 0,
    )
    if failed and run.cause is not RunCause.MANUAL and run.attempt < job.retries and _may_retry(run):
        delay = min(terms.retry_delay_s * 2**run.attempt, _MAX_RETRY_S)
        job = replace(job, retry_at=now + delay, retry_of=run.at, attempt=run.attempt + 1)
    elif job.retry_at is None:
        job = replace(job, attempt=0)
    return _ended(job, now)


def _may_retry(run: JobRun) -> bool:
    return run.problem in (RunProblem.MODEL, RunProblem.SCRIPT, RunProblem.INTERRUPTED)


def is_last_try(job: Job, run: JobRun) -> bool:
    """Return whether no retry follows the failure of this run."""
    return run.cause is RunCause.MANUAL or run.attempt >= job.retries or not _may_retry(run)


def rescheduled(job: Job, now: float, zone: tzinfo, terms: JobTerms) -> Job:
    """Return the job with its next occurrence counted from now: it is new, changed, or the clock was set back."""
    if job.paused or 0 < job.repeat <= job.taken:
        return job
    after = max(now, job.last_at) if job.last_at <= now + MAX_AHEAD_S else now
    following = next_after(job.schedule, after, zone, terms.times)
    return _ended(replace(job, next_at=following), now)


MAX_AHEAD_S: Final = 86_400.0  # an occurrence that ran further in the future was at a wrong time of the clock


def many(missed: int) -> str:
    """Return a number of missed occurrences as text."""
    return f"{missed} or more" if missed >= MAX_COUNTED else str(missed)


def unfinished(runs: Sequence[JobRun]) -> list[JobRun]:
    return [run for run in runs if not run.state.ended]
