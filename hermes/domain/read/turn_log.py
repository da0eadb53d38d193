"""Records of one turn, from its message to its end. Never runs on the event loop.

A turn can continue in another session (compression), and a message can be part of another turn (steering, an answer).
Both are followed.
"""

from __future__ import annotations

from collections.abc import Iterator

from hermes.domain.errors import BadInputError, UnknownSessionError
from hermes.domain.ids import Seq, SessionId, TurnId
from hermes.domain.read.reader import Reader
from hermes.domain.read.views import TurnRecord
from hermes.domain.records import (
    BadRecord,
    ContextCarried,
    LogEntry,
    Merged,
    MessageReceived,
    ModelReplied,
    Record,
    TurnFailed,
    TurnFinished,
)
from hermes.domain.session.state import Session, Turn
from hermes.domain.turn.usage import Usage

_PAGE = 64


def find_end(
    reader: Reader, session: SessionId, turn: TurnId
) -> tuple[Session | None, TurnFinished | TurnFailed | None, Usage]:
    """Session, end and usage of a turn."""
    head, entries = _of_turn(reader, session, turn)
    usage = Usage()
    for entry in entries:
        match entry.record:
            case TurnFinished() as end:
                return head, end, usage + end.usage
            case TurnFailed() as end:
                return head, end, usage
            case ModelReplied() as reply:
                usage += reply.usage
            case ContextCarried(turn=Turn() as moved) if moved.id == turn:
                usage += moved.usage
            case Merged(turn=merged, into=into) if merged == turn:
                return find_end(reader, session if head is None else head.id, into)
            case _:
                pass
    if head is not None and head.successor is not None and entries and not _is_open_in(head, turn):
        return find_end(reader, head.successor, turn)
    return head, None, usage


def records_of(reader: Reader, session: SessionId, turn: TurnId) -> list[TurnRecord]:
    head, entries = _of_turn(reader, session, turn)
    records = [TurnRecord(session=session, seq=entry.seq, record=entry.record) for entry in entries]
    if head is None or not records:
        return records
    match records[-1].record:
        case Merged(turn=merged, into=into) if merged == turn:
            return records_of(reader, session, into)
        case TurnFinished() | TurnFailed():
            return records
    if head.successor is not None and not _is_open_in(head, turn):
        return [*records, *records_of(reader, head.successor, turn)]
    return records


def span_of(reader: Reader, session: SessionId, turn: TurnId) -> tuple[SessionId, tuple[int, int]]:
    """Return the session in which a turn ended, and its first and last record there."""
    records = records_of(reader, session, turn)
    if not records:
        raise UnknownSessionError(f"there is no turn {turn} in session {session}")
    last = records[-1]
    if not isinstance(last.record, TurnFinished | TurnFailed):
        raise BadInputError(f"turn {turn} has not ended yet", code="wrong_phase")
    first = next(each for each in records if each.session == last.session)
    return last.session, (first.seq, last.seq)


def _is_open_in(head: Session, turn: TurnId) -> bool:
    return any(turn == each.id for each in (head.turn, *head.queue) if each is not None)


class _Entry:
    """An entry whose record is known to be readable."""

    __slots__ = ("record", "seq")

    def __init__(self, seq: Seq, record: Record) -> None:
        self.seq = seq
        self.record = record


def _of_turn(reader: Reader, session: SessionId, turn: TurnId) -> tuple[Session | None, list[_Entry]]:
    """Return the turn's records in this session, from the newest back to its first."""
    head = reader.head(session)
    found: list[_Entry] = []
    for entry in backwards(reader, session, head.next_seq if head is not None else 0):
        record = entry.record
        if isinstance(record, BadRecord):
            continue
        begins = _begins(record, turn)
        if begins or getattr(record, "turn", None) == turn:
            found.append(_Entry(entry.seq, record))
        if begins:
            break
    return head, found[::-1]


def _begins(record: Record, turn: TurnId) -> bool:
    if isinstance(record, ContextCarried):
        moved = record.turn is not None and record.turn.id == turn
        return moved or any(each.turn == turn for each in record.waiting)
    return isinstance(record, MessageReceived) and record.turn == turn


def backwards(reader: Reader, session: SessionId, end: int) -> Iterator[LogEntry]:
    while end > 0:
        first = max(0, end - _PAGE)
        yield from reversed(reader.log(session, Seq(first), end - first))
        end = first
