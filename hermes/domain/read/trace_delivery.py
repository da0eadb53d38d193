"""Deliveries of a message, done and pending, as steps of its trace. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from hermes.domain.outbox import reply_id
from hermes.domain.outbox_message import DeadLetter, DeliveredMessage, OutboxMessage
from hermes.domain.read.trace import TraceLine, TraceState, TraceStep
from hermes.domain.read.views import TurnRecord
from hermes.domain.records import Asked, Merged, MessageReceived
from hermes.domain.session.routed_question import question_ids
from hermes.domain.turn.submission import Seen

PAUSE_S = 1.0  # a longer one is to be explained
LONG_S = 60.0  # a step that takes longer is reported as a problem
Delivery: TypeAlias = OutboxMessage | DeliveredMessage | DeadLetter


def outgoing_in(entries: Iterable[TurnRecord]) -> list[str]:
    """Return the ids of outbox messages that these records may have created."""
    names = []
    for entry in entries:
        match entry.record:
            case MessageReceived(turn=turn) | Merged(into=turn):
                names.append(reply_id(turn))
            case Asked():
                names += question_ids(entry.record)
    return names


def taken_line(seen: Seen, deliveries: Iterable[Delivery], *, now: float) -> TraceLine:
    """Return the trace of an inbound id that no session accepted."""
    said = [delivered(delivery, now) for delivery in deliveries]
    return TraceLine(
        at=seen.at,
        session=seen.session,
        turn=seen.turn,
        state=said[-1][0] if said else TraceState.TAKEN,
        platform=seen.key.partition(":")[0],
        inbound=seen.key,
        sent=tuple(message for _, ids, _ in said for message in ids),
        steps=(TraceStep(at=seen.at, what="taken"), *(step for _, _, step in said)),
    )


def delivered(delivery: Delivery, now: float) -> tuple[TraceState, tuple[str, ...], TraceStep]:
    match delivery:
        case DeliveredMessage():
            took_s = delivery.sent_at - delivery.at
            problem = f"it took {span(took_s)}" if took_s > LONG_S else ""
            problem = "a part of it may have arrived twice" if delivery.repeated else problem
            where = f"{_where(delivery)}: {', '.join(delivery.messages) or 'empty message'}"
            step = TraceStep(at=delivery.at, what="sent", detail=where, took_s=took_s, problem=problem)
            return TraceState.SENT, delivery.messages, step
        case DeadLetter():
            outgoing = delivery.undelivered
            where = _where(outgoing) if outgoing is not None else delivery.source.platform
            at = outgoing.at if outgoing is not None else delivery.at
            step = TraceStep(at=at, what="undelivered", detail=where, problem=f"given up: {delivery.problem}")
            return TraceState.UNDELIVERED, outgoing.sent if outgoing is not None else (), step
        case OutboxMessage(final=False):
            step = TraceStep(at=delivery.at, what="shown", detail=f"{_where(delivery)}, while it grows")
            return TraceState.RUNNING, delivery.sent, step
        case OutboxMessage():
            waits = f"not sent for {span(now - delivery.at)}" if now - delivery.at > PAUSE_S else ""
            tried = f": {delivery.problem} ({count(delivery.tries, 'try', 'tries')})" if delivery.problem else ""
            problem = f"{waits or 'not sent yet'}{tried}" if waits or tried else ""
            step = TraceStep(at=delivery.at, what="to be sent", detail=_where(delivery), problem=problem)
            return TraceState.SENDING, delivery.sent, step


def _where(said: OutboxMessage | DeliveredMessage) -> str:
    place = said.place
    return " ".join(filter(None, (place.platform, place.chat, place.thread)))


def span(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{max(0.0, seconds):.1f} s"


def count(number: int, noun: str, many: str = "") -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {many or noun + 's'}"
