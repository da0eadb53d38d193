"""Outbox messages that follow from a session's records: answers, questions, notices. Pure.

They are stored in the transaction of those records, so that none is lost. Their ids follow from the records, so that
none is created twice. A queued message gets a sign that it was received; a sign is not stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from textwrap import shorten
from typing import assert_never

from hermes.domain.access.question import SHOW, asked_by, is_long
from hermes.domain.cause.cause import CompressionCause, CompressionEnd
from hermes.domain.cause.legacy_reason import compression_cause
from hermes.domain.ids import TurnId
from hermes.domain.media.reference import COPY, FILE_TOOLS
from hermes.domain.outbox_message import OutboxKind, OutboxMessage, TurnEnd
from hermes.domain.records import (
    Answered,
    Asked,
    CompressionFailed,
    Ended,
    HandedOver,
    MarkedResumePending,
    Merged,
    MessageReceived,
    Posted,
    Record,
    Suspended,
    ToolFinished,
    TurnFailed,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
)
from hermes.domain.session.compression import failure_text
from hermes.domain.session.routed_question import question_id, routed, settled, shown
from hermes.domain.session.state import Session, Turn
from hermes.domain.source import Place
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.reasoning import reasoning_of
from hermes.domain.turn.tool_call import CallOutcome, CallState
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.values import replace

_MAX_REPEATED = 200  # characters of an answer that its question shows
NOTHING_SAID = "(The model had nothing to say.)"
STOPPED = "(stopped)"
COMPRESS_REPLY_S = 2.5  # within this time the reply to /compress tells its failure; the command waits a bit longer
BURST_S = 5.0  # messages that come closer together are one burst
_FENCE = "```"
MAX_REASONING = 2000  # characters of reasoning that are shown with an answer


def reply_id(turn: TurnId) -> str:
    return f"reply:{turn}"


def outgoing_of(session: Session, records: Iterable[Record]) -> list[OutboxMessage]:
    """Return the outbox messages of these records. `session`: the state before them.

    A message that is not final only names the place where a turn is shown.
    """
    places = {turn.id: turn.place for turn in (session.turn, *session.queue) if turn is not None}
    records = tuple(records)
    outgoing = _settled(session, records)
    for record in records:
        if isinstance(record, MessageReceived):
            places[record.turn] = session.place if record.source.automatic else record.source.place
            if (place := record.source.place) and _waits(session, record, records):
                outgoing.append(_sign(session, record, place))
        elif isinstance(record, Asked) and record.routed:
            outgoing += routed(session, record, places.get(record.turn), again=_is_cut(session, record.call))
        elif isinstance(record, HandedOver):
            outgoing += _handover(session, record)
        elif (message := _outgoing(session, record, places)) is not None:
            outgoing.append(message)
    return outgoing


def _outgoing(session: Session, record: Record, places: dict[TurnId, Place | None]) -> OutboxMessage | None:
    match record:
        case TurnStarted(turn=turn) if place := places.get(turn):
            return replace(_reply(session, turn, place, "", record.at), final=False)
        case TurnFinished(turn=turn) if place := places.get(turn):
            thought = _thought(record.message) if session.preferences.show_reasoning else ""
            return _reply(session, turn, place, thought + _said(record.message), record.at)
        case TurnFailed(turn=turn) if place := places.get(turn):
            return _without_answer(record, _reply(session, turn, place, "", record.at))
        case Asked(turn=turn) if place := places.get(turn):
            name = question_id(turn, record.call)
            return OutboxMessage(
                id=f"{name}:whole" if _is_cut(session, record.call) else name,
                kind=OutboxKind.QUESTION,
                place=place,
                text=record.question,
                at=record.at,
                session=session.id,
                turn=turn,
                choices=record.choices,
                call=record.call,
                files=(record.file,) if record.file else (),
            )
        case ToolFinished(outcome=CallOutcome.OK) if record.name in FILE_TOOLS and (place := places.get(record.turn)):
            return _file(session, record, place)
        case MarkedResumePending() if (
            not session.resume_reason and session.turn is not None and (place := session.turn.place)
        ):
            return _notice(
                session, f"stop:{session.turn.id}:{session.turn.attempt}", place, _banner(record), record.at
            )
        case TurnInterrupted(turn=turn, hold=hold) if (place := places.get(turn)) and hold:
            name = f"held:{turn}:{session.interruptions + 1}"
            text = f"I was interrupted ({record.reason}). Write anything, and I go on where I was."
            return _notice(session, name, place, text, record.at)
        case Suspended() if place := session.place:
            text = (
                f"This conversation is suspended: {record.reason}. Nothing was lost. Your next message begins a "
                f"fresh one; /resume {session.id} brings this one back."
            )
            return _notice(session, f"suspended:{session.id}:{session.next_seq}", place, text, record.at)
        case CompressionFailed() if (place := session.place) and (text := _not_compressed(session, record)):
            return _notice(session, f"compression:{session.id}:{session.next_seq}", place, text, record.at)
        case Posted(queued=False):
            return OutboxMessage(
                id=record.id, kind=OutboxKind.NOTICE, place=record.place, text=record.text, at=record.at
            )
        case Ended(notice=str(notice)) if notice and (place := session.place):
            return _notice(session, f"reset:{session.id}:{session.next_seq}", place, notice, record.at)
    return None


def _is_cut(session: Session, call: str) -> bool:
    """Return whether only the beginning of its question was shown; the next one shows all of it."""
    return session.turn is not None and any(each.id == call and each.cut for each in session.turn.calls)


def _not_compressed(session: Session, record: CompressionFailed) -> str:
    """Return the notice of a failed compression; empty if a command's reply or a failed turn reports it."""
    cause = compression_cause(session.compressing_cause, session.compressing)
    asked = cause is CompressionCause.ASKED
    match record.end:
        case CompressionEnd.STOPPED:
            return ""
        case CompressionEnd.INTERRUPTED:
            return f"The summary was interrupted ({record.reason}). /compress begins it again." if asked else ""
        case CompressionEnd.FAILED if asked:
            late = record.at - session.compressing_since >= COMPRESS_REPLY_S
            return failure_text(record.reason, automatic=False) if late else ""
        case CompressionEnd.FAILED:
            in_turn = session.turn is not None
            return "" if in_turn else failure_text(record.reason, automatic=True)
    assert_never(record.end)


def _waits(session: Session, received: MessageReceived, records: tuple[Record, ...]) -> bool:
    """Return whether a message waits behind running work. In a burst, only the first one counts."""
    if received.steer or not (session.turn or session.compressing):
        return False
    if any(isinstance(each, TurnStarted | Merged) for each in records):
        return False
    return not session.queue or received.at - session.queue[-1].accepted_at >= BURST_S


def _sign(session: Session, received: MessageReceived, place: Place) -> OutboxMessage:
    return replace(
        _reply(session, received.turn, place, "", received.at),
        id=f"sign:{received.turn}",
        kind=OutboxKind.SIGN,
        final=False,
    )


def _settled(session: Session, records: tuple[Record, ...]) -> list[OutboxMessage]:
    """Return updates for questions that are settled: they show the answer and lose their buttons."""
    turn = session.turn
    call = next((each for each in turn.calls if each.state is CallState.ASKED), None) if turn is not None else None
    if turn is None or call is None:
        return []
    question = asked_by(call, turn.id, brief=True)
    name = question_id(turn.id, call.id)
    shown_whole = not call.cut and is_long(call)
    if any(isinstance(each, Asked) and each.call == call.id for each in records):
        if call.routed:
            return shown(session, call, question.text, SHOW, records[0].at)
        if turn.place is None:
            return []
        return [
            _amendment(session, turn, call.id, amends=name, text=f"{question.text}\n\n→ {SHOW}", at=records[0].at)
        ]
    ends = (each for each in records if isinstance(each, Answered | ToolFinished) and each.call == call.id)
    end = next(ends, None)
    if end is None or not question.choices:
        return []
    answer = shorten(end.answer, _MAX_REPEATED, placeholder=" …") if isinstance(end, Answered) else "not answered"
    if call.routed:
        return settled(session, call, question.text, end, answer, whole=shown_whole)
    if turn.place is None:
        return []
    asked = f"{name}:whole" if shown_whole else name
    return [_amendment(session, turn, call.id, amends=asked, text=f"{question.text}\n\n→ {answer}", at=end.at)]


def _amendment(session: Session, turn: Turn, call: str, *, amends: str, text: str, at: float) -> OutboxMessage:
    """Return the update of a settled question, without buttons."""
    assert turn.place is not None
    whole = ":whole" if amends.endswith(":whole") else ""
    return OutboxMessage(
        id=f"answered:{turn.id}:{call}{whole}",
        kind=OutboxKind.NOTICE,
        place=turn.place,
        text=text,
        at=at,
        session=session.id,
        turn=turn.id,
        amends=amends,
    )


def _reply(session: Session, turn: TurnId, place: Place, text: str, at: float) -> OutboxMessage:
    return OutboxMessage(
        id=reply_id(turn), kind=OutboxKind.REPLY, place=place, text=text, at=at, session=session.id, turn=turn
    )


def _file(session: Session, record: ToolFinished, place: Place) -> OutboxMessage:
    """Return the message with a sent file. The tool's result holds the path of its copy."""
    copy = json.loads(json.loads(record.message)["content"])[COPY]
    return OutboxMessage(
        id=f"file:{record.turn}:{record.call}",
        kind=OutboxKind.NOTICE,
        place=place,
        text="",
        at=record.at,
        session=session.id,
        turn=record.turn,
        files=(copy,),
    )


def _notice(session: Session, name: str, place: Place, text: str, at: float) -> OutboxMessage:
    return OutboxMessage(
        id=f"notice:{name}", kind=OutboxKind.NOTICE, place=place, text=text, at=at, session=session.id
    )


def _handover(session: Session, record: HandedOver) -> list[OutboxMessage]:
    """Return the notices to both chats of a handover."""
    moved, name = record.handover, f"handover:{session.id}:{session.next_seq}"
    title = f"“{session.preferences.title}”" if session.preferences.title else "A conversation"
    there = f"{title} continues here. Just write; /handoff back returns it."
    if moved.replaced is not None:
        there += f" The earlier conversation of this chat is stored: /resume {moved.replaced} brings it back."
    notices = [_notice(session, f"{name}:to", moved.place, there, record.at)]
    if moved.origin is not None:
        here = f"This conversation continues in {moved.place.words}. What you write here belongs to it as well."
        notices.append(_notice(session, f"{name}:from", moved.origin, here, record.at))
    return notices


def _banner(record: MarkedResumePending) -> str:
    return f"Hermes is stopping ({record.reason}). It will try to go on with this when it is back."


def _said(message: EncodedMessage) -> str:
    content = json.loads(message).get("content")
    return content if isinstance(content, str) and content.strip() else NOTHING_SAID


def _thought(message: EncodedMessage) -> str:
    """Return the model's reasoning as a quotation before its answer; empty if there is none."""
    text = reasoning_of(message).text
    if not text:
        return ""
    cut = text if len(text) <= MAX_REASONING else f"{text[:MAX_REASONING]}…"
    return "\n".join(f"> {line}" for line in cut.splitlines()) + "\n\n"


def _without_answer(record: TurnFailed, reply: OutboxMessage) -> OutboxMessage:
    if record.failure.kind is not FailureKind.CANCELLED:
        return replace(reply, text=_failure_text(record.failure), end=TurnEnd.FAILED)
    why = record.failure.message
    return replace(reply, text="" if record.told else f"{why[:1].upper()}{why[1:]}.", end=TurnEnd.STOPPED)


def _failure_text(failure: Failure) -> str:
    return f"That did not work: {failure.message.rstrip('.')}. Your message is kept: /retry tries again."


def last_words(outgoing: OutboxMessage, shown: str) -> str:
    """Return the final text of a turn without an answer: the part that was shown, and why it ends."""
    if not shown:
        return outgoing.text or STOPPED
    closed = f"{shown}\n{_FENCE}" if shown.count(_FENCE) % 2 else shown
    why = STOPPED if outgoing.end is TurnEnd.STOPPED else f"(This is as far as it came.)\n{outgoing.text}"
    return f"{closed}\n\n{why}"
