"""Terms of child sessions."""

from __future__ import annotations

import re

import pytest

from hermes.domain.child.child import Assignment, ChildDuty, Purpose, child_id, decode_duty, is_spent, steps
from hermes.domain.ids import SessionId
from hermes.domain.source import Source
from hermes.domain.turn.usage import Usage

TERMS = Assignment(purpose=Purpose.REVIEW, key="review:s:t", max_steps=4, max_tokens=100, max_usd=0.5)


def test_one_key_has_one_id_that_looks_like_others() -> None:
    assert child_id("review:s:t", 0.0) == child_id("review:s:t", 0.5)
    assert child_id("review:s:t", 0.0) != child_id("review:s:u", 0.0)
    assert re.fullmatch(r"19700101_000000_[0-9a-f]{8}", child_id("review:s:t", 0.0))


@pytest.mark.parametrize(
    ("used", "spent"),
    [
        (Usage(prompt_tokens=60, completion_tokens=39), False),
        (Usage(prompt_tokens=60, completion_tokens=40), True),
        (Usage(cost_usd=0.5), True),
    ],
)
def test_budget_is_spent(used: Usage, spent: bool) -> None:
    assert is_spent(TERMS, used) is spent
    assert not is_spent(Assignment(purpose=Purpose.REVIEW, key="k"), used)


def test_steps_are_limited_by_both() -> None:
    assert (steps(TERMS, 90), steps(TERMS, 2), steps(None, 90)) == (4, 2, 90)


def test_damaged_duty_is_refused() -> None:
    duty = ChildDuty(key="k", child=SessionId("c"), purpose=Purpose.REVIEW, source=Source(platform="api"))
    assert decode_duty(duty.fact, duty.encoded()).child == "c"
    for value in (b"", b"{}", b"[]", duty.encoded().replace(b"review", b"unknown")):
        with pytest.raises(ValueError, match=r"child|Purpose|Expecting"):
            decode_duty(duty.fact, value)
