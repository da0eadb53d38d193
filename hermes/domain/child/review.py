"""Review: when a child session reads a conversation, to keep what should last. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hermes.domain.access.role import Role
from hermes.domain.child.child import Purpose, child_id
from hermes.domain.child.review_topic import ReviewTopic
from hermes.domain.records import ChildStarted, Record, TurnFinished
from hermes.domain.session.builder import then
from hermes.domain.session.turn_role import role_of_turn

if TYPE_CHECKING:
    from hermes.domain.session.protocol import ReviewTerms, Step
    from hermes.domain.session.state import Session


def when_due(before: Session, decided: Step, now: float, terms: ReviewTerms) -> Step:
    """Add the start of a review to the step that ends a turn, if one is due."""
    turn = before.turn
    if turn is None or not (terms.turns or terms.calls) or not _has_ended(decided.records, turn.id):
        return decided
    topics = _topics(decided.session, terms)
    if not topics or not _may_review(before):
        return decided
    key = f"{Purpose.REVIEW}:{before.id}:{turn.id}"
    started = ChildStarted(
        at=now,
        turn=turn.id,
        child=child_id(key, now),
        key=key,
        purpose=Purpose.REVIEW,
        topics=topics,
        by=turn.by,
        name=turn.name,
        role=role_of_turn(before),
    )
    return then(decided, started)


def _has_ended(records: Iterable[Record], turn: str) -> bool:
    return any(isinstance(each, TurnFinished) and each.turn == turn and not each.handed for each in records)


def _topics(session: Session, terms: ReviewTerms) -> tuple[str, ...]:
    due = {
        ReviewTopic.MEMORY: 0 < terms.turns <= session.unreviewed_turns,
        ReviewTopic.SKILLS: 0 < terms.calls <= session.unreviewed_calls,
    }
    return tuple(topic for topic, is_due in due.items() if is_due)


def _may_review(session: Session) -> bool:
    """Return whether the conversation is one person's, who is not a guest, and not a child's own."""
    turn, company = session.turn, session.company
    shared = (turn is not None and turn.several) or (company is not None and company.shared)
    return session.assignment is None and not shared and role_of_turn(session) is not Role.GUEST
