"""Tokens and money that records add to the accounts, by day, model and platform. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache

from hermes.domain.access.role import Role, assumed
from hermes.domain.operations import Tally
from hermes.domain.records import ContextCarried, ModelReplied, Record, TurnFinished
from hermes.domain.session.state import Session, Turn
from hermes.domain.turn.usage import Usage

_LONGEST = 80  # of a name, so that a day's books stand together in the store


def tallies_of(session: Session, records: Iterable[Record], turn: Turn | None = None) -> list[Tally]:
    """`turn`: the one in flight when these were written."""
    return [
        Tally(
            day=day_of(record.at),
            model=model[:_LONGEST],
            platform=session.platform[:_LONGEST],
            usage=usage,
            turns=1 if isinstance(record, TurnFinished) else 0,
            guest=_guest(session, record, turn)[:_LONGEST],
        )
        for record in records
        for model, usage in _used(record)
    ]


def _guest(session: Session, record: Record, turn: Turn | None) -> str:
    """Return the guest who used it; guests have a budget of their own."""
    turn = record.turn if isinstance(record, ContextCarried) else turn
    if turn is None or (turn.role or assumed(session.platform)) is not Role.GUEST:
        return ""
    return turn.by or session.id


def _used(record: Record) -> list[tuple[str, Usage]]:
    match record:
        case ModelReplied() | TurnFinished():
            return [(record.model, record.usage)]
        case ContextCarried() if record.summary_model:
            return [(record.summary_model, record.summary_usage)]
    return []


def day_of(at: float) -> str:
    return _name_of_day(at // 86_400)


@lru_cache(maxsize=8)
def _name_of_day(number: float) -> str:
    return f"{datetime.fromtimestamp(number * 86_400, UTC):%Y-%m-%d}"
