"""Standing grants: one fact for each rule, stored in the transaction of the answer. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.domain.access.question import ALWAYS
from hermes.domain.operations import PutFact
from hermes.domain.records import Answered, Record
from hermes.domain.session.state import Session

PREFIX = "grant:"


def granted_by(session: Session, records: Iterable[Record]) -> tuple[str, ...]:
    """Return the rules that these records allow permanently. `session`: the state before them."""
    answered = {record.call for record in records if isinstance(record, Answered) and record.answer == ALWAYS}
    calls = session.turn.calls if session.turn is not None and answered else ()
    return tuple(rule for call in calls if call.id in answered and not call.gate.once for rule in call.gate.rules)


def facts_of(rules: Iterable[str]) -> list[PutFact]:
    return [PutFact(name=PREFIX + rule, value=b"1") for rule in rules]


def rules_in(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.removeprefix(PREFIX) for name in names)
