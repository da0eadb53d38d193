"""The transcript: what the model is shown, as a fold over a session's records.

It is a convenience, not a second truth: it can be dropped at any time and rebuilt from the log. A message enters
it when its turn starts, so that what was said while another turn ran stands after that turn's answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from hermes.ports import Reader, StoredMessage
from hermes.records import BadRecord, LogEntry, MessageReceived, Record, TurnFailed, TurnFinished, TurnStarted
from hermes.types import EncodedMessage, Seq, Session, TurnId

LOOK_BACK = 128  # records before a page that may hold what it shows: messages wait for their turn
PAGE_BYTES = 4 << 20


class Transcript:
    __slots__ = ("_next_seq", "_waiting", "messages")

    def __init__(self) -> None:
        self.messages: list[EncodedMessage] = []
        self._waiting: dict[TurnId, tuple[EncodedMessage, ...]] = {}
        self._next_seq = Seq(0)

    def extend(self, entries: Iterable[tuple[Seq, Record]]) -> None:
        """Take in what is new; what was taken in before is passed over."""
        for seq, record in entries:
            if seq >= self._next_seq:
                self.messages.extend(newly_visible(record, self._waiting))
                self._next_seq = Seq(seq + 1)


def newly_visible(record: Record, waiting: dict[TurnId, tuple[EncodedMessage, ...]]) -> tuple[EncodedMessage, ...]:
    """The messages that this record adds to the transcript. `waiting` holds what was received but not started."""
    match record:
        case MessageReceived():
            waiting[record.turn] = record.messages
        case TurnStarted():
            return waiting.pop(record.turn, ())
        case TurnFinished():
            return (record.message,)
        case TurnFailed():
            waiting.pop(record.turn, None)
        case _:
            pass
    return ()


def stored_messages(entries: Iterable[LogEntry]) -> tuple[list[StoredMessage], bool]:
    """The messages that these records show, and whether all that they show could be told from these records alone."""
    stored: list[StoredMessage] = []
    waiting: dict[TurnId, tuple[EncodedMessage, ...]] = {}
    whole = True
    for entry in entries:
        record = entry.record
        if isinstance(record, BadRecord):
            continue
        if isinstance(record, TurnStarted) and record.attempt == 1 and record.turn not in waiting:
            whole = False
        turn = getattr(record, "turn", TurnId(""))
        stored.extend(
            StoredMessage(seq=entry.seq, at=record.at, turn=turn, message=message)
            for message in newly_visible(record, waiting)
        )
    return stored, whole


def read_page(reader: Reader, session: Session, after: Seq | None, limit: int) -> list[StoredMessage]:
    """Some messages after that place, or the last ones, reading no more of the log than it takes.

    What became visible together has the same place and stays together, as far as a page's size in bytes allows.
    """
    window = 4 * limit + LOOK_BACK
    while True:
        first = Seq(max(0, (session.next_seq if after is None else after + 1) - window))
        entries = reader.log(session.id, first, None if after is None else 2 * window)
        messages, whole = stored_messages(entries)
        messages = [message for message in messages if after is None or message.seq > after]
        enough = len(messages) >= limit or (after is not None and first + 2 * window >= session.next_seq)
        if enough and (whole or first == 0):
            break
        if first == 0 and after is None:
            break
        window *= 4
    return _last(messages, limit) if after is None else _first(messages, limit)


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
