"""Open question of a turn, for clients that cannot wait: the question, and how to answer it."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.adapters.http.caller import is_owner
from hermes.adapters.http.presentation import JsonObject
from hermes.domain.access import question
from hermes.domain.access.question import Question
from hermes.domain.events import CallAsked
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.session.state import Session
from hermes.domain.turn.tool_call import Approval


def asked_in(session: Session) -> CallAsked | None:
    """Return the question that a session waits for, as an event."""
    found = question.open_question(session)
    return None if found is None else _event(session.id, found)


def _event(session: SessionId, found: Question) -> CallAsked:
    return CallAsked(
        session=session,
        turn=found.turn,
        call=found.call,
        name=found.name,
        question=found.text,
        choices=found.choices,
        approval=found.approval,
        summary=found.summary,
    )


def shown_choices(choices: Sequence[str], *, approval: bool) -> list[str]:
    """Return the choices that the caller has. A named key can only deny a tool call."""
    return [each for each in choices if not approval or is_owner() or each == Approval.DENY]


def field(asked: CallAsked) -> JsonObject:
    return {
        "kind": "approval" if asked.approval else "question",
        "call_id": asked.call,
        "question": asked.question,
        "choices": shown_choices(asked.choices, approval=asked.approval),
        "session_id": asked.session,
        "turn_id": asked.turn,
    }


def in_words(asked: CallAsked, turn: TurnId, *, may_approve: bool) -> str:
    """Return the question as the text of an answer. `turn` is the client's turn."""
    first = "" if asked.turn == turn else question.BEHIND_ANOTHER
    return first + question.in_words(
        asked.question, asked.choices, asked.session, approval=asked.approval, may_approve=may_approve
    )
