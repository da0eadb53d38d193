from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.models.retry import BACKOFF_MAX_S, MAX_RETRY_AFTER_S, RETRYABLE, TRIES_MAX, next_delay
from hermes.domain.turn.turn_failure import Failure, FailureKind

retryable = st.sampled_from(sorted(RETRYABLE))
jitters = st.floats(0, 1, exclude_max=True)
tries = st.integers(1, TRIES_MAX - 1)


def fail(kind: FailureKind, retry_after_s: float | None = None) -> Failure:
    return Failure(kind=kind, message="no", retry_after_s=retry_after_s)


@given(retryable, tries, jitters)
def test_a_delay_is_never_negative_and_never_above_the_cap(kind: FailureKind, tries: int, jitter: float) -> None:
    delay = next_delay(fail(kind), tries, jitter)
    assert delay is not None
    assert 0 <= delay <= BACKOFF_MAX_S


@given(retryable, tries, jitters, st.floats(0, MAX_RETRY_AFTER_S))
def test_the_wait_that_was_asked_for_is_never_cut_short(
    kind: FailureKind, tries: int, jitter: float, asked: float
) -> None:
    delay = next_delay(fail(kind, asked), tries, jitter)
    assert delay is not None
    assert asked <= delay <= asked + BACKOFF_MAX_S


@given(st.floats(0.01, 1, exclude_max=True))
def test_delays_grow_with_the_same_dice(jitter: float) -> None:
    delays = [next_delay(fail(FailureKind.OVERLOADED), tries, jitter) for tries in range(1, TRIES_MAX)]
    assert delays == sorted(delays, key=lambda delay: delay or 0)
    assert len(set(delays)) == len(delays)


@given(retryable, st.integers(TRIES_MAX, 1000), jitters)
def test_four_tries_are_the_end(kind: FailureKind, tries: int, jitter: float) -> None:
    assert TRIES_MAX == 4
    assert next_delay(fail(kind), tries, jitter) is None


@pytest.mark.parametrize("kind", sorted(set(FailureKind) - RETRYABLE))
def test_what_another_try_cannot_mend_is_not_tried_again(kind: FailureKind) -> None:
    assert next_delay(fail(kind, 1.0), 1, 0.5) is None


def test_turn_fails_immediately_if_the_retry_delay_is_too_long() -> None:
    assert next_delay(fail(FailureKind.RATE_LIMIT, MAX_RETRY_AFTER_S + 1), 1, 0.5) is None


@given(st.tuples(jitters, jitters, jitters))
def test_each_wait_is_longer_than_the_one_before_whatever_the_dice(dice: tuple[float, float, float]) -> None:
    waits = [next_delay(fail(FailureKind.OVERLOADED), tries, jitter) or 0 for tries, jitter in enumerate(dice, 1)]
    assert 0.5 <= waits[0] <= waits[1] <= waits[2]
