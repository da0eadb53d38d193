from __future__ import annotations

from hermes.agent.accounting import Budget
from hermes.agent.ledger import Ledger
from hermes.ports.storage import Tally
from hermes.types import Usage

DAY_S = 86400.0


def used(day: str, tokens: int) -> Tally:
    return Tally(day=day, model="m", platform="api", usage=Usage(prompt_tokens=tokens))


def test_what_the_journal_has_of_today_counts_and_what_it_has_of_yesterday_does_not() -> None:
    ledger = Ledger(budget=Budget(day_tokens=100), clock=lambda: DAY_S)
    ledger.load([used("1970-01-01", 500), used("1970-01-02", 60)])
    assert ledger.problem(Usage()) == ""
    ledger.add(Usage(prompt_tokens=30, completion_tokens=10))
    assert "budget of 100" in ledger.problem(Usage())


def test_a_new_day_is_a_new_page() -> None:
    now = [0.0]
    ledger = Ledger(budget=Budget(day_tokens=10), clock=lambda: now[0])
    ledger.add(Usage(prompt_tokens=10))
    assert ledger.problem(Usage())
    now[0] = DAY_S
    assert ledger.problem(Usage()) == ""


def test_a_session_has_a_budget_of_its_own() -> None:
    ledger = Ledger(budget=Budget(session_usd=1.0), clock=lambda: 0.0)
    assert ledger.problem(Usage(cost_usd=0.5)) == ""
    assert "session" in ledger.problem(Usage(cost_usd=1.0))
