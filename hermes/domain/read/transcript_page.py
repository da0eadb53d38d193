"""Pages of a stored transcript, read from a small part of the log."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.domain.errors import UnknownSessionError
from hermes.domain.ids import Seq, SessionId, TurnId
from hermes.domain.read.reader import Reader
from hermes.domain.read.transcript import Waiting, carried_origins, newly_visible
from hermes.domain.read.views import StoredMessage
from hermes.domain.records import (
    Answered,
    BadRecord,
    ContextCarried,
    LogEntry,
    Merged,
    MessageReceived,
    Record,
    ToolFinished,
    TurnStarted,
)
from hermes.domain.session.state import Session, is_hidden
from hermes.domain.session.turn_role import answered_by, who_said
from hermes.domain.turn.message import MessageOrigin

LOOK_BACK = 128  # records before a page that may hold what it shows: messages wait for their turn
RECORDS_A_MESSAGE = 4  # at most, as a rule: what is read first for a page
PAGE_BYTES = 4 << 20
_SYSTEM = (MessageOrigin.NOTE, MessageOrigin.PROCESS)  # shown as notes


def stored_messages(session: Session, entries: Iterable[LogEntry]) -> tuple[list[StoredMessage], list[Seq]]:
    """Return the messages of these records, and the records that show messages received before them."""
    stored: list[StoredMessage] = []
    waiting: Waiting = {}
    automatic: set[TurnId] = set()
    incomplete: list[Seq] = []
    people: dict[TurnId, str] = {}
    approvals: dict[tuple[TurnId, str], str] = {}
    for entry in entries:
        record = entry.record
        if isinstance(record, BadRecord):
            continue
        if _brings_in(record) and getattr(record, "turn", None) not in waiting:
            incomplete.append(entry.seq)
        turn = TurnId("") if isinstance(record, ContextCarried) else getattr(record, "turn", TurnId(""))
        automatic.update(each.turn for each in _received_in(record) if each.source.automatic)
        people.update((each.turn, who_said(each.source)) for each in _received_in(record) if each.source.role)
        if isinstance(record, Answered):
            approvals[record.turn, record.call] = f"{record.answer}, by {answered_by(record)}"
        said = len(waiting.get(turn, ()))
        carried = carried_origins(record) if isinstance(record, ContextCarried) else ()
        stored.extend(
            StoredMessage(
                seq=entry.seq,
                at=record.at,
                turn=turn,
                message=message,
                note=carried[offset] in _SYSTEM
                if carried
                else _is_note(record, beyond=offset >= said, automatic=turn in automatic),
                by=people.get(turn, "") if isinstance(record, TurnStarted | Merged) and offset < said else "",
                answered=approvals.pop((turn, record.call), "") if isinstance(record, ToolFinished) else "",
            )
            for offset, message in enumerate(newly_visible(record, waiting))
            if not is_hidden(session, entry.seq, offset)
        )
    return stored, incomplete


def _received_in(record: Record) -> tuple[MessageReceived, ...]:
    match record:
        case MessageReceived():
            return (record,)
        case ContextCarried():
            return record.waiting
        case _:
            return ()


def _is_note(record: Record, *, beyond: bool, automatic: bool) -> bool:
    """Return whether Hermes wrote the message. `beyond`: it was not received for that turn."""
    match record:
        case TurnStarted():
            return beyond or automatic
        case Merged():
            return automatic
        case _:
            return False


def _brings_in(record: Record) -> bool:
    """Return whether the record makes an earlier received message visible."""
    return (isinstance(record, TurnStarted) and record.attempt == 1) or (
        isinstance(record, Merged) and not record.hidden
    )


def read_page(
    reader: Reader, session: Session, after: Seq | None, limit: int, *, before: Seq | None = None
) -> list[StoredMessage]:
    """Some messages after that place, or the last ones, or the last before a place. Reads little of the log.

    What became visible together has the same place and stays together, as far as a page's size in bytes allows.
    """
    if after is not None:
        return _read_after(reader, session, after, limit)
    end = session.next_seq if before is None else min(before, session.next_seq)
    return _read_last(reader, session, limit, end=end, whole=before is not None)


def _read_last(reader: Reader, session: Session, limit: int, *, end: int, whole: bool) -> list[StoredMessage]:
    """Return the last messages before a record. `whole`: messages with the same place stay together."""
    window = RECORDS_A_MESSAGE * limit + LOOK_BACK
    while True:
        first = Seq(max(0, end - window))
        messages, incomplete = stored_messages(session, reader.log(session.id, first, end - first))
        page = _last(messages, limit)
        if whole and page:
            together = [each for each in messages[: -len(page)] if each.seq == page[0].seq]
            page = [*together, *page]
        is_full = len(page) >= limit or len(page) < len(messages)  # the latter for its size in bytes
        if first == 0 or (is_full and not any(seq >= page[0].seq for seq in incomplete)):
            return page
        window *= 4


def _read_after(reader: Reader, session: Session, after: Seq, limit: int) -> list[StoredMessage]:
    back, ahead = LOOK_BACK, RECORDS_A_MESSAGE * limit
    while True:
        first, end = Seq(max(0, after + 1 - back)), after + 1 + ahead
        messages, incomplete = stored_messages(session, reader.log(session.id, first, end - first))
        messages = [message for message in messages if message.seq > after]
        page = _first(messages, limit)
        is_full = len(page) >= limit or len(page) < len(messages) or end >= session.next_seq
        last = page[-1].seq if page else end
        if is_full and (first == 0 or not any(after < seq <= last for seq in incomplete)):
            return page
        back, ahead = 4 * back, 4 * ahead


def read_around(reader: Reader, session: SessionId, seq: Seq | None, n: int) -> list[StoredMessage]:
    """Up to `n` messages before that place, those at it, and up to `n` after."""
    head = reader.head(session)
    if head is None:
        raise UnknownSessionError(f"there is no session {session}")
    if seq is None:
        return read_page(reader, head, None, n)
    window = 4 * n + LOOK_BACK
    messages, _ = stored_messages(head, reader.log(session, Seq(max(0, seq - window)), 2 * window))
    before = [message for message in messages if message.seq < seq]
    after = [message for message in messages if message.seq > seq]
    return [*_last(before, n), *(message for message in messages if message.seq == seq), *_first(after, n)]


def _last(messages: list[StoredMessage], limit: int) -> list[StoredMessage]:
    return list(reversed(_fitting(reversed(messages), limit)))


def _first(messages: list[StoredMessage], limit: int) -> list[StoredMessage]:
    page = _fitting(messages, limit)
    together = [message for message in messages[len(page) :] if page and message.seq == page[-1].seq]
    return [*page, *together]


def _fitting(messages: Iterable[StoredMessage], limit: int) -> list[StoredMessage]:
    page: list[StoredMessage] = []
    room = PAGE_BYTES
    for message in messages:
        if page and (len(page) >= limit or room < len(message.message)):
            break
        page.append(message)
        room -= len(message.message)
    return page
