"""Occurrences: which ones run, late or not, and what is recorded of the others."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hermes.domain.job.job import Job, JobRun, JobRunState, MissedPolicy, RunCause, RunProblem
from hermes.domain.job.occurrence import (
    JobTerms,
    Taken,
    due_time,
    finish,
    is_last_try,
    jitter,
    requested,
    rescheduled,
    take,
)
from hermes.domain.job.schedule import parse_schedule
from hermes.domain.source import Source
from hermes.domain.values import replace
from hermes.system.cron_times import CronsimTimes

TIMES = CronsimTimes()
TERMS = JobTerms(zone=UTC, times=TIMES, keep_ended_s=100.0, retry_delay_s=60.0)
NOW = datetime(2026, 11, 19, 12, 0, tzinfo=UTC).timestamp()
HOUR = 3600.0


def job(schedule: str = "every 1h", **changes: Any) -> Job:
    parsed = parse_schedule(schedule, now=NOW, zone=UTC, times=TIMES)
    made = Job(id="j", name="", schedule=parsed, source=Source(platform="cli"), created_at=NOW)
    return rescheduled(replace(made, **changes), NOW, UTC, TERMS)


def taken(job: Job, now: float) -> Taken:
    return take(job, now, UTC, TERMS)


def done(
    taken: Taken, now: float, state: JobRunState = JobRunState.DONE, problem: RunProblem = RunProblem.NONE
) -> Job:
    """Return the job after the end of the run that was started."""
    assert taken.job is not None
    assert taken.start is not None
    return finish(taken.job, replace(taken.start, state=state, problem=problem), now, TERMS)


def states(found: Taken) -> list[tuple[JobRunState, int]]:
    return [(run.state, run.missed) for run in found.runs]


def test_due_occurrence_starts_once_and_the_next_one_follows() -> None:
    first = job()
    assert due_time(first, TERMS) == NOW + HOUR
    assert taken(first, NOW + HOUR - 1) == Taken(job=first)
    found = taken(first, NOW + HOUR + 1)
    assert found.start is not None
    assert (found.start.at, found.start.cause, found.start.occurrence) == (
        NOW + HOUR,
        RunCause.DUE,
        f"j:{NOW + HOUR:.0f}",
    )
    assert found.job is not None
    assert (found.job.running, found.job.next_at, found.job.last_at) == (1, NOW + 2 * HOUR, NOW + HOUR)
    after = done(found, NOW + HOUR + 9)
    assert (after.running, after.last_state, due_time(after, TERMS)) == (0, "done", NOW + 2 * HOUR)


def test_missed_occurrences_are_recorded_and_the_last_one_runs_late() -> None:
    found = taken(job(), NOW + 5 * HOUR + 600)
    assert states(found) == [(JobRunState.MISSED, 4), (JobRunState.WORKING, 0)]
    assert (found.runs[0].at, found.runs[0].until) == (NOW + HOUR, NOW + 4 * HOUR)
    assert found.start is not None
    assert (found.start.at, found.start.cause) == (NOW + 5 * HOUR, RunCause.LATE)
    assert found.job is not None
    assert (found.job.next_at, found.job.runs) == (NOW + 6 * HOUR, 2)


@pytest.mark.parametrize(
    ("late_s", "runs"), [(30, True), (1700, True), (1900, False)], ids=["on time", "within grace", "beyond grace"]
)
def test_grace_is_half_a_period(late_s: float, runs: bool) -> None:
    found = taken(job(), NOW + HOUR + late_s)
    assert (found.start is not None) is runs
    assert states(found) == ([(JobRunState.WORKING, 0)] if runs else [(JobRunState.MISSED, 1)])
    assert found.job is not None
    assert found.job.next_at == NOW + 2 * HOUR


def test_grace_has_bounds_and_can_be_set() -> None:
    daily = job("0 8 * * *")
    assert daily.next_at is not None
    assert taken(daily, daily.next_at + 7000).start is not None
    assert taken(daily, daily.next_at + 7400).start is None
    assert taken(replace(daily, grace_s=20_000.0), daily.next_at + 7400).start is not None
    once = job("30m")
    assert taken(once, NOW + 1800 + 100).start is not None
    missed = taken(once, NOW + 1800 + 200)
    assert (missed.start, states(missed)) == (None, [(JobRunState.MISSED, 1)])
    assert missed.job is not None
    assert missed.job.ended_at is not None


def test_policy_skip_runs_nothing_late_and_policy_all_runs_everything_in_order() -> None:
    skipping = taken(job(missed=MissedPolicy.SKIP), NOW + 3 * HOUR + 120)
    assert (skipping.start, states(skipping)) == (None, [(JobRunState.MISSED, 2), (JobRunState.MISSED, 1)])
    now, found = NOW + 3 * HOUR + 120, []
    current = job(missed=MissedPolicy.ALL)
    while (due := due_time(current, TERMS)) is not None and due <= now:
        step = taken(current, now)
        assert step.start is not None
        assert step.job is not None
        assert due_time(step.job, TERMS) is None  # waits for the end of the run
        found.append(step.start.at)
        current = done(step, now)
    assert found == [NOW + HOUR, NOW + 2 * HOUR, NOW + 3 * HOUR]


def test_occurrence_is_left_out_while_the_run_before_works() -> None:
    first = taken(job(), NOW + HOUR)
    assert first.job is not None
    assert due_time(first.job, TERMS) == NOW + 2 * HOUR
    second = taken(first.job, NOW + 2 * HOUR)
    assert (second.start, states(second)) == (None, [(JobRunState.OVERLAPPED, 1)])
    assert second.job is not None
    assert (second.job.running, second.job.next_at) == (1, NOW + 3 * HOUR)


def test_single_job_ends_and_is_deleted_later() -> None:
    found = taken(job("5s"), NOW + 5)
    after = done(found, NOW + 8)
    assert (after.next_at, after.ended_at, due_time(after, TERMS)) == (None, NOW + 8, NOW + 108)
    assert taken(after, NOW + 108) == Taken(job=None)


def test_repeat_ends_the_job_after_that_many_occurrences() -> None:
    current, starts = job(repeat=2), 0
    for hour in (1, 2, 3):
        found = taken(current, NOW + hour * HOUR)
        if found.start is None:
            break
        starts += 1
        current = done(found, NOW + hour * HOUR + 1)
        if current.ended_at is not None:
            break
    assert (starts, current.next_at) == (2, None)


def test_failed_run_is_tried_again_with_a_growing_delay_and_then_given_up() -> None:
    current, at, delays = job(retries=2), NOW + HOUR, []
    found = taken(current, at)
    while True:
        assert found.start is not None
        current = done(found, at, JobRunState.FAILED, RunProblem.MODEL)
        if current.retry_at is None:
            assert is_last_try(current, replace(found.start, problem=RunProblem.MODEL))
            break
        assert not is_last_try(current, replace(found.start, problem=RunProblem.MODEL))
        delays.append(current.retry_at - at)
        at = current.retry_at
        found = taken(current, at)
        assert found.start is not None
        assert (found.start.cause, found.start.at) == (RunCause.RETRY, NOW + HOUR)
    assert (delays, current.failures, current.attempt) == ([60.0, 120.0], 3, 0)
    assert due_time(current, TERMS) == NOW + 2 * HOUR
    assert done(taken(current, NOW + 2 * HOUR), NOW + 2 * HOUR).failures == 0


def test_bad_setup_is_not_tried_again() -> None:
    found = taken(job(retries=3), NOW + HOUR)
    assert done(found, NOW + HOUR, JobRunState.FAILED, RunProblem.SETUP).retry_at is None


def test_occurrence_ids_differ_between_retries_and_requests() -> None:
    first = taken(job(retries=1), NOW + HOUR)
    failed = done(first, NOW + HOUR, JobRunState.FAILED, RunProblem.MODEL)
    assert failed.retry_at is not None
    second, asked = taken(failed, failed.retry_at), requested(failed, "op", NOW + HOUR)
    assert first.start is not None
    assert second.start is not None
    assert asked.start is not None
    assert len({run.occurrence for run in (first.start, second.start, asked.start)}) == 3


def test_paused_job_is_never_due() -> None:
    paused = replace(job(), paused=True)
    assert due_time(paused, TERMS) is None
    assert taken(paused, NOW + 9 * HOUR) == Taken(job=paused)


def test_jitter_is_stable_and_within_its_limit() -> None:
    jittered = job(jitter_s=600.0)
    delays = [jitter(replace(jittered, id=f"job-{number}"), NOW) for number in range(200)]
    assert all(0 <= delay < 600 for delay in delays)
    assert len(set(delays)) == 200
    assert min(delays) < 100
    assert max(delays) > 500
    due = due_time(jittered, TERMS)
    assert due == NOW + HOUR + jitter(jittered, NOW + HOUR)
    assert taken(jittered, due - 0.01).start is None
    started = taken(jittered, due).start
    assert started is not None
    assert (started.at, started.cause) == (NOW + HOUR, RunCause.DUE)


def test_clock_that_was_set_back_moves_times_but_repeats_no_occurrence() -> None:
    assert rescheduled(job("0 8 * * *"), NOW, UTC, TERMS) == job("0 8 * * *")
    ahead = replace(job("0 8 * * *"), next_at=NOW + 400 * 86_400, last_at=NOW + 399 * 86_400)
    assert rescheduled(ahead, NOW, UTC, TERMS).next_at == job("0 8 * * *").next_at
    ran = replace(job("0 * * * *"), last_at=NOW + HOUR, next_at=NOW + 2 * HOUR)
    assert rescheduled(ran, NOW + 1800, UTC, TERMS).next_at == NOW + 2 * HOUR


def test_run_that_is_not_the_current_one_does_not_free_the_job() -> None:
    found = taken(job(), NOW + HOUR)
    assert found.job is not None
    other = JobRun(job="j", number=9, occurrence="x", at=NOW, began_at=NOW, state=JobRunState.DONE)
    assert finish(found.job, other, NOW + HOUR, TERMS).running == 1
