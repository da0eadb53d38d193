"""Transcript that the model gets, as a fold over a session's records.

It is a convenience, not a second truth: it can be dropped at any time and rebuilt from the log. A message enters
it when its turn starts, so that a message sent while another turn ran comes after that turn's answer.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any, NamedTuple

from hermes.domain.access.role import Role, lowest
from hermes.domain.cause.legacy_reason import legacy_origin
from hermes.domain.ids import Seq, TurnId
from hermes.domain.media.reference import SCHEME
from hermes.domain.records import (
    Amended,
    AuthorityDropped,
    ContextCarried,
    Instructed,
    Merged,
    MessageReceived,
    ModelReplied,
    PromptBuilt,
    Record,
    ToolFinished,
    TurnFailed,
    TurnFinished,
    TurnStarted,
    Undone,
)
from hermes.domain.turn.message import EncodedMessage, MessageOrigin

_MEDIA = SCHEME.encode()
_WITH_EFFECT = frozenset({
    PromptBuilt, Instructed, AuthorityDropped, Undone, ContextCarried, MessageReceived, Amended, Merged, TurnFailed,
    TurnStarted,
})  # fmt: skip
_BEGINS_TURN = (MessageOrigin.PERSON, MessageOrigin.PROCESS)

Waiting = dict[TurnId, tuple[EncodedMessage, ...]]  # received, and not part of the transcript yet


class Transcript:
    __slots__ = (
        "_automatic",
        "_continuing",
        "_next_seq",
        "_roles_waiting",
        "_seqs",
        "instructions",
        "messages",
        "origins",
        "own",
        "pictured",
        "prompt",
        "roles",
        "size_bytes",
        "starts",
        "taken_back",
        "waiting",
    )

    def __init__(self) -> None:
        self.prompt: EncodedMessage | None = None
        self.instructions = EncodedMessage(b"")  # of the client
        self.messages: list[EncodedMessage] = []
        self.size_bytes = 0  # of the messages
        self.origins: list[MessageOrigin] = []  # of the messages
        self.starts: list[int] = []  # where among the messages a person's turns begin
        self.roles: list[Role | None] = []  # with which each of them began; None: taken over from another session
        self.own = 0  # how many of them are not taken over from another session
        self.taken_back = 0  # how many that were taken over are gone: there, they still count
        self.pictured = False  # a message refers to the media store, or one that was undone did
        self.waiting: Waiting = {}
        self._roles_waiting: dict[TurnId, Role] = {}
        self._automatic: set[TurnId] = set()  # received messages that no person wrote
        self._continuing: set[TurnId] = set()  # received messages that continue what a turn before them began
        self._seqs: list[int] = []  # the record that made each message visible
        self._next_seq = Seq(0)

    def extend(self, entries: Iterable[tuple[Seq, Record]]) -> None:
        """Add new records; records that were added before are skipped."""
        for seq, record in entries:
            if seq >= self._next_seq:
                self._add(seq, record)
                self._next_seq = Seq(seq + 1)

    def place(self, index: int) -> tuple[int, int]:
        """Return the record that made a message visible, and its index among the record's messages."""
        seq = self._seqs[index]
        return seq, index - self._seqs.index(seq)

    def shown_before(self, seq: int) -> int:
        """Return how many messages became visible before that record."""
        return bisect_left(self._seqs, seq)

    def arguments(self, call: str) -> tuple[str, str]:
        """Return name and arguments of a tool call, as the model wrote them."""
        asked_at = self.asked_at(call)
        for each in _calls_in(self.messages[asked_at]) if asked_at < len(self.messages) else ():
            if each["id"] == call:
                return each["function"]["name"], each["function"]["arguments"]
        return "", "{}"

    def asked_at(self, call: str) -> int:
        """Return the index of the message with the model's last request for that call; the end if there is none."""
        places = range(len(self.messages) - 1, -1, -1)
        asked = (n for n in places if any(each["id"] == call for each in _calls_in(self.messages[n])))
        return next(asked, len(self.messages))

    def _add(self, seq: int, record: Record) -> None:
        if type(record) in _WITH_EFFECT:
            self._apply(record)
        received = len(self.waiting.get(record.turn, ())) if isinstance(record, TurnStarted | Merged) else 0
        new = newly_visible(record, self.waiting)
        self.pictured = self.pictured or any(each.find(_MEDIA) >= 0 for each in (*new, self.instructions))
        if not new:
            return
        self.origins.extend(self._origins(record, len(new), received))
        self.messages.extend(new)
        self.size_bytes += sum(map(len, new))
        self._seqs.extend([seq] * len(new))

    def _apply(self, record: Record) -> None:
        """Apply what a record changes besides the messages that it shows."""
        match record:
            case PromptBuilt():
                self.prompt = record.message
            case Instructed():
                self.instructions = record.message
            case AuthorityDropped():
                self.prompt, self.instructions = None, EncodedMessage(b"")
            case Undone():
                self._cut(record)
            case ContextCarried():
                self.prompt, self.instructions = record.prompt, record.instructions
                self.starts = list(_starts_in(record))
                self.roles = [None] * len(self.starts)
                self._roles_waiting = {each.turn: each.source.standing for each in record.waiting}
                self._automatic.update(each.turn for each in record.waiting if each.source.automatic)
            case MessageReceived():
                self._roles_waiting[record.turn] = record.source.standing
                if record.source.automatic:
                    self._automatic.add(record.turn)
                if record.results or not record.messages:
                    self._continuing.add(record.turn)
            case Amended() if record.role is not None and record.turn in self._roles_waiting:
                self._roles_waiting[record.turn] = lowest(record.role, self._roles_waiting[record.turn])
            case Merged() | TurnFailed():
                self._roles_waiting.pop(record.turn, None)
            case TurnStarted() if record.turn in self.waiting and record.turn not in self._continuing:
                self.starts.append(len(self.messages))
                self.roles.append(self._roles_waiting.pop(record.turn, None))
                self.own += 1
            case _:
                pass

    def _origins(self, record: Record, count: int, received: int) -> Iterable[MessageOrigin]:
        """Return the origin of each message that a record shows. `received`: how many came with a message."""
        match record:
            case ContextCarried():
                return carried_origins(record)
            case TurnStarted() | Merged() if count:
                automatic = record.turn in self._automatic
                author = MessageOrigin.PROCESS if automatic else MessageOrigin.PERSON
                return [author if n < received else MessageOrigin.NOTE for n in range(count)]
            case _:
                return [MessageOrigin.OTHER] * count

    def _cut(self, undone: Undone) -> None:
        first = next((n for n, seq in enumerate(self._seqs) if seq >= undone.seq), len(self._seqs))
        keep = first + undone.offset
        self.size_bytes -= sum(map(len, self.messages[keep:]))
        del self.messages[keep:], self._seqs[keep:], self.origins[keep:]
        left = [start for start in self.starts if start < keep]
        gone = len(self.starts) - len(left)
        self.taken_back += max(0, gone - self.own)
        self.own = max(0, self.own - gone)
        self.starts = left
        del self.roles[len(left) :]


class Carried(NamedTuple):
    """Origins of messages that another session takes over, and the indexes of those that begin a turn."""

    origins: tuple[MessageOrigin, ...]
    starts: tuple[int, ...]


def carry(transcript: Transcript, messages: Iterable[EncodedMessage]) -> Carried:
    """Return the origins of messages that were selected from a transcript, in its order.

    A message that is not in the transcript is a shortened tool result, or else the summary.
    """
    origins: list[MessageOrigin] = []
    starts: list[int] = []
    places: dict[EncodedMessage, list[int]] = {}
    for n, message in enumerate(transcript.messages):
        places.setdefault(message, []).append(n)
    after, turn = 0, 0  # how far the transcript has been searched; how many of its turns had begun there
    for n, message in enumerate(messages):
        at = next((place for place in places.get(message, ()) if place >= after), None)
        if at is None:
            origins.append(_summary_or_result(message))
            continue
        origins.append(transcript.origins[at])
        begun = bisect_right(transcript.starts, at)
        if begun > turn and transcript.origins[at] in _BEGINS_TURN:
            starts.append(n)
            turn = begun
        after = at + 1
    return Carried(tuple(origins), tuple(starts))


def _summary_or_result(message: EncodedMessage) -> MessageOrigin:
    return MessageOrigin.NOTE if json.loads(message).get("role") == "user" else MessageOrigin.OTHER


def carried_origins(record: ContextCarried) -> tuple[MessageOrigin, ...]:
    """Return the origin of each message that a session took over.

    An older version stored none, and an imported file may hold too few.
    """
    known = len(record.origins) == len(record.messages)
    return record.origins if known else tuple(map(legacy_origin, record.messages))


def _starts_in(record: ContextCarried) -> Iterable[int]:
    if len(record.origins) == len(record.messages):
        return sorted(n for n in set(record.starts) if 0 <= n < len(record.messages))
    return (n for n, origin in enumerate(carried_origins(record)) if origin in _BEGINS_TURN)


def newly_visible(record: Record, waiting: Waiting) -> tuple[EncodedMessage, ...]:
    """Return the messages that a record adds to the transcript. `waiting`: received messages not yet started."""
    match record:
        case MessageReceived():
            waiting[record.turn] = record.messages
        case Amended() if record.turn in waiting:
            said = waiting[record.turn]
            waiting[record.turn] = (*record.messages, *said[1:]) if record.replaces else (*said, *record.messages)
        case ContextCarried():
            waiting.update({each.turn: each.messages for each in record.waiting})
            return record.messages
        case TurnStarted():
            return (*waiting.pop(record.turn, ()), *_note(record.note))
        case Merged():
            said = waiting.pop(record.turn, ())
            return () if record.hidden else said
        case ToolFinished(within=str(within)) if within:
            return ()
        case ModelReplied() | ToolFinished() | TurnFinished():
            return (record.message,)
        case TurnFailed():
            waiting.pop(record.turn, None)
        case _:
            pass
    return ()


def _note(text: str) -> tuple[EncodedMessage, ...]:
    if not text:
        return ()
    return (EncodedMessage(json.dumps({"role": "user", "content": text}, ensure_ascii=False).encode()),)


def _calls_in(message: EncodedMessage) -> list[dict[str, Any]]:
    if b'"tool_calls"' not in bytes(message):  # most have none, and need no decoding
        return []
    calls: list[dict[str, Any]] = json.loads(message).get("tool_calls") or []
    return calls
