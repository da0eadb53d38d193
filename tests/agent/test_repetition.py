"""An answer that repeats itself is recognised; ordinary text is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.repetition import LENGTH_MIN, TIMES_MIN, UNIT_MAX, is_looping

SENTENCE = "I added a new paragraph that continues the existing paragraph.\n\n"


@pytest.mark.parametrize(
    ("text", "looping"),
    [
        (SENTENCE * TIMES_MIN, True),
        ("Hello. " + SENTENCE * TIMES_MIN, True),
        (SENTENCE * (TIMES_MIN - 1), False),
        ("-" * 80, False),
        ("ha" * LENGTH_MIN, True),
        (" ".join(map(str, range(500))), False),
        ("", False),
    ],
)
def test_repetition(text: str, looping: bool) -> None:
    assert is_looping(text) is looping


@given(st.text(min_size=1, max_size=UNIT_MAX), st.text(max_size=50))
def test_any_unit_is_found_when_it_is_repeated_often_enough(unit: str, before: str) -> None:
    times = max(TIMES_MIN, -(-LENGTH_MIN // len(unit)))
    assert is_looping(before + unit * times)
