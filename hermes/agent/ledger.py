"""Ledger of today's spending by all sessions: an in-memory sum of the journal's usage records."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from hermes.agent.accounting import Budget, Spent, budget_problem, guest_problem
from hermes.domain.operations import Tally
from hermes.domain.turn.usage import Usage
from hermes.ports.given import Clock

_NONE = Budget()
DAY_S = 86_400


def spent_of(usage: Usage) -> Spent:
    return Spent(tokens=usage.prompt_tokens + usage.completion_tokens, usd=usage.cost_usd)


class Ledger:
    def __init__(self, *, budget: Budget, clock: Clock, guest_budget: Budget = _NONE) -> None:
        self.budget = budget
        self.guest_budget = guest_budget  # of each guest
        self._clock = clock
        self._day, self._number = self.today(), self._day_number()
        self._spent = Spent()
        self._guests: dict[str, Spent] = {}  # today's spending of each guest

    def load(self, tallies: Iterable[Tally]) -> None:
        """Add today's usage from the journal."""
        for tally in tallies:
            if tally.day == self._day:
                self._count(tally.usage, tally.guest)

    def add(self, usage: Usage, *, guest: str = "") -> None:
        """Add usage. `guest` is the person who spent it, if they have their own budget."""
        self._start_new_day()
        self._count(usage, guest)

    def _count(self, usage: Usage, guest: str) -> None:
        self._spent += spent_of(usage)
        if guest:
            self._guests[guest] = self._guests.get(guest, Spent()) + spent_of(usage)

    def problem(self, session: Usage, *, guest: str = "") -> str:
        """Return why no further model call is allowed; empty if one is allowed."""
        self._start_new_day()
        own = self._guests.get(guest, Spent())
        return (guest and guest_problem(spent_of(session), own, self.guest_budget)) or budget_problem(
            spent_of(session), self._spent, self.budget
        )

    def today(self) -> str:
        return f"{datetime.fromtimestamp(self._clock(), UTC):%Y-%m-%d}"

    def _start_new_day(self) -> None:
        """Reset the sums when the date has changed."""
        if self._day_number() != self._number:
            self._day, self._number = self.today(), self._day_number()
            self._spent, self._guests = Spent(), {}

    def _day_number(self) -> int:
        return int(self._clock() // DAY_S)
