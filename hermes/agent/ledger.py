"""What was spent today, by all sessions: a number in memory that follows what the journal counts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from hermes.agent.accounting import Budget, Spent, budget_problem
from hermes.ports.given import Clock
from hermes.ports.storage import Tally
from hermes.types import Usage


def spent_of(usage: Usage) -> Spent:
    return Spent(tokens=usage.prompt_tokens + usage.completion_tokens, usd=usage.cost_usd)


class Ledger:
    def __init__(self, *, budget: Budget, clock: Clock) -> None:
        self.budget = budget
        self._clock = clock
        self._day = self.today()
        self._spent = Spent()

    def load(self, tallies: Iterable[Tally]) -> None:
        """What the journal has of today."""
        self._spent = sum((spent_of(tally.usage) for tally in tallies if tally.day == self._day), self._spent)

    def add(self, usage: Usage) -> None:
        self._turn_page()
        self._spent += spent_of(usage)

    def problem(self, session: Usage) -> str:
        """Why no further call may be made; empty when one may."""
        self._turn_page()
        return budget_problem(spent_of(session), self._spent, self.budget)

    def today(self) -> str:
        return f"{datetime.fromtimestamp(self._clock(), UTC):%Y-%m-%d}"

    def _turn_page(self) -> None:
        if self.today() != self._day:
            self._day, self._spent = self.today(), Spent()
