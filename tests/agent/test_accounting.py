from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.accounting import (
    Budget,
    Spent,
    budget_problem,
    cost_of,
    costed,
    dollars,
)
from hermes.domain.turn.usage import Price, Usage

PRICE = Price(input=2.0, cached_input=0.5, output=8.0)
counts = st.integers(0, 10**9)


def used(prompt: int, completion: int, cached: int = 0, cost_usd: float = 0.0) -> Usage:
    return Usage(prompt_tokens=prompt, completion_tokens=completion, cached_tokens=cached, cost_usd=cost_usd)


def test_a_call_costs_what_its_tokens_cost() -> None:
    assert cost_of(used(1_000_000, 0), PRICE) == pytest.approx(2.0)
    assert cost_of(used(0, 500_000), PRICE) == pytest.approx(4.0)
    assert cost_of(used(1_000_000, 0, 400_000), PRICE) == pytest.approx(1.4)
    assert cost_of(used(1_000_000, 0, 400_000), Price(input=2.0)) == pytest.approx(2.0)
    assert cost_of(used(10, 10), Price()) == 0


def test_a_free_cache_is_not_an_unknown_price() -> None:
    assert cost_of(used(1_000_000, 0, 1_000_000), Price(input=2.0, cached_input=0.0)) == 0


@given(st.integers(-10, 10**9), st.integers(-10, 10**9), st.integers(-10, 10**9))
def test_no_report_of_an_endpoint_makes_a_cost_negative_or_more_than_uncached(
    prompt: int, completion: int, cached: int
) -> None:
    cost = cost_of(used(prompt, completion, cached), PRICE)
    assert 0 <= cost <= cost_of(used(prompt, completion), PRICE) + 1e-6


def test_what_the_endpoint_says_it_cost_goes_before_the_price() -> None:
    assert costed(used(1_000_000, 0), PRICE).cost_usd == pytest.approx(2.0)
    assert costed(used(1_000_000, 0, cost_usd=0.3), PRICE).cost_usd == 0.3


@given(counts, counts)
def test_without_a_budget_nothing_is_a_problem(tokens: int, usd: int) -> None:
    much = Spent(tokens=tokens, usd=float(usd))
    assert budget_problem(much, much, Budget()) == ""


@pytest.mark.parametrize(
    ("budget", "what", "way_out"),
    [
        (
            Budget(session_tokens=100_000),
            "this session has used 120,000 tokens of a budget of 100,000",
            "session_tokens",
        ),
        (Budget(session_usd=0.5), "this session has cost $0.6000 of a budget of $0.5000", "session_usd"),
        (Budget(day_tokens=999), "all sessions of today have used 1,000,000 tokens of a budget of 999", "day_tokens"),
        (Budget(day_usd=12.0), "all sessions of today have cost $12.34 of a budget of $12.00", "day_usd"),
    ],
)
def test_spent_budget_is_reported_with_its_setting(budget: Budget, what: str, way_out: str) -> None:
    problem = budget_problem(Spent(tokens=120_000, usd=0.6), Spent(tokens=1_000_000, usd=12.34), budget)
    assert problem.startswith(f"{what}; raise budget.{way_out}, or ")


def test_a_budget_that_is_not_spent_is_no_problem() -> None:
    budget = Budget(session_tokens=120_001, session_usd=0.61, day_tokens=1_000_001, day_usd=12.35)
    assert budget_problem(Spent(tokens=120_000, usd=0.6), Spent(tokens=1_000_000, usd=12.34), budget) == ""


def test_small_amounts_are_still_seen() -> None:
    assert [dollars(usd) for usd in (0, 0.0042, 1234.5)] == ["$0.00", "$0.0042", "$1,234.50"]
