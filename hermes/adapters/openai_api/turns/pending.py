"""Open question of a turn, for clients that cannot wait: the question, and how to answer it."""

from __future__ import annotations

from hermes.adapters.http.presentation import JsonObject
from hermes.domain.access.question import FOR_THE_SESSION, Question, open_question
from hermes.domain.events import CallAsked
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.session.state import Session


def asked_in(session: Session) -> CallAsked | None:
    """Return the question that a session waits for, as an event."""
    question = open_question(session)
    return None if question is None else _event(session.id, question)


def _event(session: SessionId, question: Question) -> CallAsked:
    return CallAsked(
        session=session,
        turn=question.turn,
        call=question.call,
        name=question.name,
        question=question.text,
        choices=question.choices,
        approval=question.approval,
    )


def field(asked: CallAsked) -> JsonObject:
    return {
        "kind": "approval" if asked.approval else "question",
        "call_id": asked.call,
        "question": asked.question,
        "choices": list(asked.choices),
        "session_id": asked.session,
        "turn_id": asked.turn,
    }


def in_words(asked: CallAsked, turn: TurnId, *, may_approve: bool) -> str:
    """Return the question as the text of an answer. `turn` is the client's turn."""
    first = "" if asked.turn == turn else "Your message is stored and waits for another turn.\n\n"
    where = f"as the next message of this session, or with POST /api/sessions/{asked.session}/answer"
    if asked.approval and not may_approve:
        return (
            f"{first}{asked.question}\n\nThe owner of this Hermes decides, with `hermes approve {asked.session}` or "
            f"`hermes deny {asked.session}`. Until then this session waits. You can only answer no: {where}."
        )
    if asked.approval:
        how = ", ".join(["yes (this once)", *(each for each in FOR_THE_SESSION if each in asked.choices)]) + " or no"
    else:
        how = "your answer" + (f" ({', '.join(asked.choices)})" if asked.choices else "")
    return f"{first}{asked.question}\n\nReply with {how}: {where}."
