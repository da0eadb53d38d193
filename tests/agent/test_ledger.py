from __future__ import annotations

from hermes.agent.accounting import Budget
from hermes.agent.ledger import Ledger
from hermes.domain.operations import Tally
from hermes.domain.turn.usage import Usage

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


def test_each_guest_has_a_day_of_their_own() -> None:
    now = [0.0]
    ledger = Ledger(budget=Budget(), guest_budget=Budget(day_tokens=10), clock=lambda: now[0])
    ledger.load([Tally(day="1970-01-01", model="m", platform="x", usage=Usage(prompt_tokens=6), guest="x:eve")])
    ledger.add(Usage(prompt_tokens=50))
    assert ledger.problem(Usage(), guest="x:eve") == ""
    ledger.add(Usage(prompt_tokens=4), guest="x:eve")
    assert "the guest budget for today" in ledger.problem(Usage(), guest="x:eve")
    assert ledger.problem(Usage(), guest="x:mallory") == ""
    assert ledger.problem(Usage()) == "", "others have no such budget"
    now[0] = DAY_S
    assert ledger.problem(Usage(), guest="x:eve") == ""


def test_a_guests_conversation_has_a_budget_and_the_one_of_all_counts_too() -> None:
    ledger = Ledger(
        budget=Budget(day_tokens=100), guest_budget=Budget(session_usd=1.0, day_usd=2.0), clock=lambda: 0.0
    )
    assert ledger.problem(Usage(cost_usd=0.5), guest="x:eve") == ""
    assert "/new" in ledger.problem(Usage(cost_usd=1.0), guest="x:eve")
    assert ledger.problem(Usage(cost_usd=1.0)) == ""
    ledger.add(Usage(prompt_tokens=100, cost_usd=2.0), guest="x:eve")
    assert "guest budget for today" in ledger.problem(Usage(), guest="x:eve")
    assert "budget of 100" in ledger.problem(Usage())
