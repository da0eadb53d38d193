"""The transcript: what the model is shown, as a fold over a session's records.

It is a convenience, not a second truth: it can be dropped at any time and rebuilt from the log. A message enters
it when its turn starts, so that what was said while another turn ran stands after that turn's answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from hermes.ports import StoredMessage
from hermes.records import BadRecord, LogEntry, MessageReceived, Record, TurnFailed, TurnFinished, TurnStarted
from hermes.types import EncodedMessage, Seq, TurnId


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


def stored_messages(entries: Iterable[LogEntry]) -> list[StoredMessage]:
    """The transcript with its places, for people and clients who read it."""
    stored: list[StoredMessage] = []
    waiting: dict[TurnId, tuple[EncodedMessage, ...]] = {}
    for entry in entries:
        if isinstance(entry.record, BadRecord):
            continue
        for message in newly_visible(entry.record, waiting):
            turn = getattr(entry.record, "turn", TurnId(""))
            stored.append(StoredMessage(seq=Seq(len(stored)), at=entry.record.at, turn=turn, message=message))
    return stored
