"""Questions that go to the owner and the admins, since the person of the turn may not answer. Pure.

Each of their chats gets the question with buttons, and the asker gets a notice. When it has its answer, all of these
messages show the answer, and the buttons disappear.
"""

from __future__ import annotations

from hermes.domain.access.role import Role
from hermes.domain.ids import TurnId
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.records import Answered, Asked, ToolFinished
from hermes.domain.session.state import Session
from hermes.domain.session.turn_role import answered_by, who_wants
from hermes.domain.source import Place
from hermes.domain.turn.tool_call import Call

_WAITS = "Waiting for the owner's approval."


def question_id(turn: TurnId, call: str, number: int = 0, *, whole: bool = False) -> str:
    """`number`: of the chat where the owner or an admin is asked; 0: where the turn is. `whole`: after a cut."""
    name = f"question:{turn}:{call}:{number}" if number else f"question:{turn}:{call}"
    return f"{name}:whole" if whole else name


def question_ids(asked: Asked) -> list[str]:
    """Return the id that all messages of this question share."""
    return [
        question_id(asked.turn, asked.call, number, whole=whole)
        for number in range(len(asked.asked_in) + 1)
        for whole in (False, True)
    ]


def routed(session: Session, asked: Asked, place: Place | None, *, again: bool) -> list[OutboxMessage]:
    """`place`: where the turn is. `again`: it was cut before, and this shows all of it."""
    text = question_text(session, asked.question)
    questions = [
        OutboxMessage(
            id=question_id(asked.turn, asked.call, number, whole=again),
            kind=OutboxKind.QUESTION,
            place=chat,
            text=text,
            at=asked.at,
            session=session.id,
            turn=asked.turn,
            choices=asked.choices,
            call=asked.call,
            files=(asked.file,) if asked.file else (),
        )
        for number, chat in enumerate(asked.asked_in, 1)
    ]
    return questions if place is None or again else [_notice(session, asked, place), *questions]


def shown(session: Session, call: Call, question: str, answer: str, at: float) -> list[OutboxMessage]:
    """All of it is being shown: the messages with its beginning lose their buttons."""
    turn = session.turn
    assert turn is not None
    return [
        OutboxMessage(
            id=f"shown:{turn.id}:{call.id}:{number}",
            kind=OutboxKind.NOTICE,
            place=chat,
            text=f"{question_text(session, question)}\n\n→ {answer}",
            at=at,
            session=session.id,
            turn=turn.id,
            amends=question_id(turn.id, call.id, number),
        )
        for number, chat in enumerate(call.asked_in, 1)
    ]


def settled(
    session: Session, call: Call, question: str, end: Answered | ToolFinished, answer: str, *, whole: bool
) -> list[OutboxMessage]:
    """`question` as it was asked; `answer` in words. `whole`: it was cut, and shown again."""
    turn = session.turn
    assert turn is not None
    who = _plain(answered_by(end)) if isinstance(end, Answered) else ""
    text = question_text(session, question)
    messages = [(number, chat, text, who) for number, chat in enumerate(call.asked_in, 1)]
    if turn.place is not None:
        role = _of_role(end.role) if isinstance(end, Answered) and end.role else ""
        messages.append((0, turn.place, question, role))
    return [
        OutboxMessage(
            id=f"answered:{turn.id}:{call.id}:{number}",
            kind=OutboxKind.NOTICE,
            place=place,
            text=f"{text}\n\n→ {answer}{f', by {by}' if by else ''}",
            at=end.at,
            session=session.id,
            turn=turn.id,
            amends=question_id(turn.id, call.id, number, whole=whole and number > 0),
        )
        for number, place, text, by in messages
    ]


def question_text(session: Session, question: str) -> str:
    """With who wants it, and where."""
    company, turn = session.company, session.turn
    assert turn is not None
    chat = _plain(company.chat) if company is not None and company.chat else ""
    where = f" in {chat}" if chat else ""
    return f"{_plain(who_wants(turn))} asks{where}, session {session.id}:\n{question}"


def _notice(session: Session, asked: Asked, place: Place) -> OutboxMessage:
    return OutboxMessage(
        id=question_id(asked.turn, asked.call),
        kind=OutboxKind.NOTICE,
        place=place,
        text=f"{asked.question}\n\n{_WAITS}",
        at=asked.at,
        session=session.id,
        turn=asked.turn,
    )


def _of_role(role: Role) -> str:
    return {Role.OWNER: "the owner", Role.ADMIN: "an admin"}.get(role, "the asker")


def _plain(name: str) -> str:
    """A name without markup: strangers write them."""
    return "".join(each if each.isprintable() and each not in "`*_~[]<>|" else " " for each in name).strip()
