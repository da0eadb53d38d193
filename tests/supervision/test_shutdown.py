"""Shutdown machine: every transition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hermes.supervision.shutdown import (
    EXIT_STORAGE,
    LAST_WORDS_S,
    SAMPLE_EVERY_S,
    Action,
    Admission,
    Effect,
    Event,
    OperationDone,
    OperationFailed,
    Running,
    RunStage,
    ShutdownRequested,
    ShutdownStage,
    State,
    StopBudget,
    Stopped,
    Stopping,
    StopRequest,
    StopTrigger,
    TimerFired,
    admit,
    next_timer,
    step,
)

STOP = StopRequest(reason="test")
RESTART = StopRequest(reason="test", restart=True)
INTERRUPT = StopRequest(reason="test", cause=StopTrigger.INTERRUPT)
SIGTERM = StopRequest(reason="test", cause=StopTrigger.SIGTERM)
STORAGE = StopRequest(reason="test", cause=StopTrigger.STORAGE_FAILURE)
BUDGET = StopBudget(drain_s=8.0)
EXTENSIBLE = StopBudget(drain_s=8.0, extensible=True)
BEFORE_LAST_WORDS = tuple(ShutdownStage)[: tuple(ShutdownStage).index(ShutdownStage.LAST_WORDS)]
AFTER_LAST_WORDS = tuple(ShutdownStage)[tuple(ShutdownStage).index(ShutdownStage.LAST_WORDS) + 1 :]
CHAT = ("telegram", "1")


def at(stage: ShutdownStage, *, deadline: float | None = 8.0, budget: StopBudget = BUDGET) -> Stopping:
    return Stopping(request=STOP, budget=budget, stage=stage, deadline=deadline)


# ------------------------------------------------------------ requests


@pytest.mark.parametrize(
    ("requests", "admission", "comes_back"),
    [
        ([STOP], Admission.ACCEPTED, False),
        ([RESTART], Admission.ACCEPTED, True),
        ([SIGTERM, SIGTERM], Admission.REPEATED, False),
        ([STOP, STORAGE], Admission.REPEATED, False),
        ([RESTART, RESTART], Admission.REPEATED, True),
        ([RESTART, SIGTERM], Admission.RESTART_CANCELLED, False),
        ([RESTART, SIGTERM, RESTART], Admission.RESTART_REFUSED, False),
        ([STOP, RESTART], Admission.RESTART_REFUSED, False),
        ([INTERRUPT, INTERRUPT], Admission.FORCE_EXIT, False),
        ([RESTART, INTERRUPT, INTERRUPT], Admission.FORCE_EXIT, False),
        ([SIGTERM, INTERRUPT], Admission.REPEATED, False),  # its first Ctrl-C
        ([INTERRUPT, SIGTERM], Admission.REPEATED, False),
        ([INTERRUPT, SIGTERM, INTERRUPT], Admission.FORCE_EXIT, False),
    ],
)
def test_admission_of_the_last_request(
    requests: Sequence[StopRequest], admission: Admission, comes_back: bool
) -> None:
    pending, verdict = admit(None, requests[0])
    for each in requests[1:]:
        pending, verdict = admit(pending, each)
    assert verdict is admission
    assert pending.comes_back is comes_back
    assert pending.request is requests[0], "the first request gives the reason and the exit code"


def test_exit_code_and_announcement_of_a_request() -> None:
    assert STORAGE.exit_code == EXIT_STORAGE
    assert [each.exit_code for each in (STOP, RESTART, SIGTERM, INTERRUPT)] == [0, 0, 0, 0]
    assert STOP.announced == "shutdown: test"
    assert RESTART.announced == "restart: test"


# ------------------------------------------------------------ the course of a shutdown


@pytest.mark.parametrize("request_", [STOP, RESTART])
def test_shutdown_goes_through_every_stage_in_order(request_: StopRequest) -> None:
    state: State = Running()
    state, effects = step(state, ShutdownRequested(request=request_, budget=BUDGET), 0.0)
    performed: list[Effect] = [*effects]
    for stage in ShutdownStage:
        state, effects = step(state, OperationDone(stage=stage), 1.0)
        performed += effects
    begun = [Action.ARM_WATCHDOG, Action.REPORT_STOPPING, Action.CLOSE_INTAKE]
    assert performed == [*begun, *(RunStage(stage=stage) for stage in ShutdownStage), Action.FINISH]
    assert state == Stopped(request=request_)


def test_failed_store_skips_to_closing() -> None:
    state, effects = step(Running(), ShutdownRequested(request=STORAGE, budget=BUDGET), 0.0)
    assert isinstance(state, Stopping)
    assert (state.stage, state.deadline) == (ShutdownStage.CLOSE_SERVERS, None)
    assert effects[-1] == RunStage(stage=ShutdownStage.CLOSE_SERVERS)
    assert Action.CLOSE_INTAKE in effects


def test_chats_of_both_marks_are_collected() -> None:
    state, _ = step(
        at(ShutdownStage.MARK_SESSIONS),
        OperationDone(stage=ShutdownStage.MARK_SESSIONS, chats=frozenset({CHAT})),
        1.0,
    )
    state, _ = step(state, OperationDone(stage=ShutdownStage.AWAIT_INTAKE), 1.0)
    other = ("slack", "2")
    state, _ = step(state, OperationDone(stage=ShutdownStage.MARK_NEW_TURNS, chats=frozenset({other})), 1.0)
    assert isinstance(state, Stopping)
    assert (state.stage, state.chats) == (ShutdownStage.NOTIFY_HOMES, frozenset({CHAT, other}))


@pytest.mark.parametrize("stage", ShutdownStage)
def test_failed_operation_does_not_stop_the_shutdown(stage: ShutdownStage) -> None:
    state, effects = step(at(stage), OperationFailed(stage=stage), 1.0)
    if stage is ShutdownStage.WRITE_CLEAN_MARKER:
        assert (state, effects) == (Stopped(request=STOP), (Action.FINISH,))
        return
    assert isinstance(state, Stopping)
    skips_marking = stage in (ShutdownStage.MARK_SESSIONS, ShutdownStage.AWAIT_INTAKE)
    expected = (
        ShutdownStage.NOTIFY_HOMES if skips_marking else tuple(ShutdownStage)[tuple(ShutdownStage).index(stage) + 1]
    )
    assert state.stage is expected
    assert effects == (RunStage(stage=expected),)


@pytest.mark.parametrize("stage", ShutdownStage)
def test_second_request_changes_nothing(stage: ShutdownStage) -> None:
    before = at(stage)
    assert step(before, ShutdownRequested(request=SIGTERM, budget=EXTENSIBLE), 1.0) == (before, ())


@pytest.mark.parametrize(
    "event", [OperationDone(stage=ShutdownStage.MARK_SESSIONS), OperationFailed(stage=ShutdownStage.DRAIN)]
)
def test_end_of_a_cancelled_operation_changes_nothing(event: Event) -> None:
    before = at(ShutdownStage.LAST_WORDS)
    assert step(before, event, 1.0) == (before, ())


@pytest.mark.parametrize(
    "event",
    [
        OperationDone(stage=ShutdownStage.DRAIN),
        OperationFailed(stage=ShutdownStage.DRAIN),
        TimerFired(active=0),
        ShutdownRequested(request=STOP, budget=BUDGET),
    ],
)
def test_stopped_is_final_and_running_waits_for_a_request(event: Event) -> None:
    stopped = Stopped(request=STOP)
    assert step(stopped, event, 1.0) == (stopped, ())
    if not isinstance(event, ShutdownRequested):
        assert step(Running(), event, 1.0) == (Running(), ())


# ------------------------------------------------------------ the budget


@pytest.mark.parametrize("stage", BEFORE_LAST_WORDS)
def test_deadline_cuts_the_drain_and_leaves_time_for_last_words(stage: ShutdownStage) -> None:
    state, effects = step(at(stage), TimerFired(active=3), 8.0)
    assert isinstance(state, Stopping)
    assert (state.stage, state.deadline) == (ShutdownStage.LAST_WORDS, 8.0 + LAST_WORDS_S)
    assert effects == (RunStage(stage=ShutdownStage.LAST_WORDS),)


def test_last_words_have_the_rest_of_the_budget() -> None:
    state, _ = step(at(ShutdownStage.DRAIN), OperationDone(stage=ShutdownStage.DRAIN), 2.0)
    assert isinstance(state, Stopping)
    assert state.deadline == 8.0


def test_deadline_cuts_last_words() -> None:
    state, effects = step(at(ShutdownStage.LAST_WORDS), TimerFired(active=0), 8.0)
    assert isinstance(state, Stopping)
    assert (state.stage, state.deadline) == (ShutdownStage.END_PROCESSES, None)
    assert effects == (RunStage(stage=ShutdownStage.END_PROCESSES),)


@pytest.mark.parametrize("stage", AFTER_LAST_WORDS)
def test_closing_has_no_deadline_but_the_watchdog(stage: ShutdownStage) -> None:
    state, _ = step(Running(), ShutdownRequested(request=STOP, budget=BUDGET), 0.0)
    for each in tuple(ShutdownStage)[: tuple(ShutdownStage).index(stage)]:
        state, _ = step(state, OperationDone(stage=each), 1.0)
    assert isinstance(state, Stopping)
    assert state.stage is stage
    assert next_timer(state) is None
    assert step(state, TimerFired(active=5), 1e9) == (state, ())


def test_early_timer_changes_nothing() -> None:
    before = at(ShutdownStage.MARK_SESSIONS)
    assert step(before, TimerFired(active=3), 7.9) == (before, ())
    assert next_timer(before) == 8.0
    assert next_timer(Running()) is None
    assert next_timer(Stopped(request=STOP)) is None


# ------------------------------------------------------------ extensions


def extensions(samples: Sequence[int], budget: StopBudget) -> tuple[int, Stopping]:
    """Feed one sample a second to a drain. Returns the number of extensions, and the last state."""
    state, _ = step(
        at(ShutdownStage.NOTIFY_HOMES, budget=budget), OperationDone(stage=ShutdownStage.NOTIFY_HOMES), 0.0
    )
    count = 0
    for number, active in enumerate(samples):
        assert next_timer(state) == number * SAMPLE_EVERY_S
        state, effects = step(state, TimerFired(active=active), number * SAMPLE_EVERY_S)
        assert effects in ((), (Action.EXTEND_TIMEOUT, Action.ARM_WATCHDOG))
        count += bool(effects)
    assert isinstance(state, Stopping)
    return count, state


@pytest.mark.parametrize(
    ("samples", "times"),
    [
        ([5, 5, 5, 5], 0),
        ([5, 3, 3, 2, 2], 2),
        ([5, 3, 5, 3, 5, 3, 5], 1),  # a turn has several calls in flight, again and again
        ([1, 0, 4, 3, 0], 1),
        ([0, 3, 2], 0),
    ],
)
def test_each_new_minimum_of_active_work_extends_the_drain(samples: list[int], times: int) -> None:
    count, state = extensions(samples, EXTENSIBLE)
    assert count == times
    assert state.least_active == min(samples)


def test_extension_starts_the_drain_time_again() -> None:
    _, state = extensions([5, 4], EXTENSIBLE)
    assert state.deadline == SAMPLE_EVERY_S + EXTENSIBLE.drain_s


def test_without_a_service_manager_nothing_is_extended() -> None:
    count, state = extensions([5, 4, 3, 2], BUDGET)
    assert (count, state.deadline) == (0, 8.0)


def test_sampling_ends_with_the_drain() -> None:
    state, _ = step(replace(at(ShutdownStage.DRAIN), sample_at=1.0), OperationDone(stage=ShutdownStage.DRAIN), 1.0)
    assert isinstance(state, Stopping)
    assert state.sample_at is None
