from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.domain.backoff import backoff_s


def test_delay_doubles_up_to_its_maximum() -> None:
    assert [backoff_s(failures, first_s=1, max_s=5) for failures in (1, 2, 3, 4)] == [1, 2, 4, 5]


def test_jitter_scales_half_of_the_delay() -> None:
    assert [backoff_s(1, first_s=8, max_s=8, jitter=jitter) for jitter in (0, 0.5, 1)] == [4, 6, 8]


@given(st.integers(1, 10**9), st.floats(0, 1))
def test_delay_stays_between_half_of_the_first_and_the_maximum(failures: int, jitter: float) -> None:
    assert 0.5 <= backoff_s(failures, first_s=1, max_s=60, jitter=jitter) <= 60
