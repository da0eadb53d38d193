"""What was spent today, by all sessions: a number in memory that follows what the journal counts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from hermes.agent.accounting import Budget, Spent, budget_problem, guest_problem
from hermes.domain.operations import Tally
from hermes.domain.types import Usage
from hermes.ports.given import Clock

_NONE = Budget()


def spent_of(usage: Usage) -> Spent:
    return Spent(tokens=usage.prompt_tokens + usage.completion_tokens, usd=usage.cost_usd)


class Ledger:
    def __init__(self, *, budget: Budget, clock: Clock, guest_budget: Budget = _NONE) -> None:
        self.budget = budget
        self.guest_budget = guest_budget  # of each guest
        self._clock = clock
        self._day = self.today()
        self._spent = Spent()
        self._guests: dict[str, Spent] = {}  # what each guest has spent of it

    def load(self, tallies: Iterable[Tally]) -> None:
        """What the journal has of today."""
        for tally in tallies:
            if tally.day == self._day:
                self._count(tally.usage, tally.guest)

    def add(self, usage: Usage, *, guest: str = "") -> None:
        """`guest`: who spent it, if they have a budget of their own."""
        self._turn_page()
        self._count(usage, guest)

    def _count(self, usage: Usage, guest: str) -> None:
        self._spent += spent_of(usage)
        if guest:
            self._guests[guest] = self._guests.get(guest, Spent()) + spent_of(usage)

    def problem(self, session: Usage, *, guest: str = "") -> str:
        """Why no further call may be made; empty when one may."""
        self._turn_page()
        own = self._guests.get(guest, Spent())
        return (guest and guest_problem(spent_of(session), own, self.guest_budget)) or budget_problem(
            spent_of(session), self._spent, self.budget
        )

    def today(self) -> str:
        return f"{datetime.fromtimestamp(self._clock(), UTC):%Y-%m-%d}"

    def _turn_page(self) -> None:
        if self.today() != self._day:
            self._day, self._spent, self._guests = self.today(), Spent(), {}
