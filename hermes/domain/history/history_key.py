"""Keys under which a client's history leads to the turn that gave its last answer. Pure.

A client that reads plain answers has the last text of a turn; one that reads streams has all its texts. Both find it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hermes.domain.access.question import BEHIND_ANOTHER, in_words, open_question
from hermes.domain.access.role import assumed
from hermes.domain.history.message_chain import answered, joined, key_of, text_and_calls
from hermes.domain.records import Asked, MessageReceived, Record, TurnFinished
from hermes.domain.session.fold.state_fold import evolve
from hermes.domain.session.state import Session, Turn
from hermes.domain.session.turn_role import role_of_turn
from hermes.domain.turn.submission import Seen


def located_by(before: Session, records: Sequence[Record], after: Session, now: float) -> list[Seen]:
    """Return the keys that these records add. `before` and `after` are the session around them."""
    located: list[Seen] = []
    if not any(isinstance(record, TurnFinished | Asked | MessageReceived) for record in records):
        return located
    session, passed = before, 0
    for number, record in enumerate(records):
        if isinstance(record, TurnFinished | Asked):
            for earlier in records[passed:number]:
                session = evolve(session, earlier)
            passed = number
            if (turn := session.turn) is not None and turn.chain:
                located += _keys(session, turn, record, now)
    return [*located, *_of_waiting(after, now)]


def _of_waiting(session: Session, now: float) -> Iterable[Seen]:
    """Return the keys of messages that wait behind a question: their clients get the question as the answer."""
    asked = open_question(session)
    for turn in session.queue if asked is not None else ():
        if turn.chain and asked is not None:
            words = in_words(
                asked.text,
                asked.choices,
                session.id,
                approval=asked.approval,
                may_approve=(turn.role or assumed(session.platform)).approves,
            )
            yield from _seen(session, turn, BEHIND_ANOTHER + words, (), now=now)


def _keys(session: Session, turn: Turn, record: TurnFinished | Asked, now: float) -> Iterable[Seen]:
    match record:
        case TurnFinished():
            return _seen(session, turn, *text_and_calls(record.message), now=now)
        case Asked():
            approval = not any(call.id == record.call and call.question for call in turn.calls)
            approves = role_of_turn(session).approves
            words = in_words(record.question, record.choices, session.id, approval=approval, may_approve=approves)
            return _seen(session, turn, words, (), now=now)


def _seen(
    session: Session, turn: Turn, text: str, calls: Iterable[Mapping[str, Any]], *, now: float
) -> Iterable[Seen]:
    chains = (answered(turn.chain, each, calls) for each in dict.fromkeys((text, joined(turn.said, text))))
    return (
        Seen(key=key_of(chain), session=session.id, turn=turn.id, fingerprint=b"", at=now)
        for chain in dict.fromkeys(chains)
    )
