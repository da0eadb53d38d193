"""Search for the message that a name means, and for the records of its trace. Never runs on the event loop.

A name is the id of a session, a run, a response, an outbox message or a platform's message, an inbound key, an
Idempotency-Key, or a turn's id or its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hermes.domain.errors import BadInputError, UnknownSessionError
from hermes.domain.ids import RESPONSE, RUN, InboundKey, SessionId, TurnId, decode_token, inbound_of
from hermes.domain.outbox_message import DeliveredMessage, OutboxMessage
from hermes.domain.read.lineage import Address, find_family, find_lineage, find_route
from hermes.domain.read.reader import Reader
from hermes.domain.read.trace import TraceLine
from hermes.domain.read.trace_delivery import Delivery, outgoing_in, taken_line
from hermes.domain.read.turn_log import backwards
from hermes.domain.read.turn_trace import fold_trace
from hermes.domain.read.views import TurnRecord
from hermes.domain.records import BadRecord, ContextCarried, MessageReceived
from hermes.domain.session.state import Session
from hermes.domain.turn.submission import Seen

_SESSIONS = 100  # the last active ones, in which a turn is searched
_RECORDS = 500  # of each
_BEGINNING = 8  # of a turn's id: what lists show
_ANSWERS_TO = ("command", "notice", "pressed", "refused")  # outbox messages of an inbound key, not of a turn


def find_trace(reader: Reader, name: str, *, limit: int, now: float, alive: bool = True) -> list[TraceLine]:
    """Return the lines of a message, or of the last messages of a session, oldest first."""
    search = _Search(reader, now=now, alive=alive)
    if find_route(reader, Address(session=SessionId(name), exact=True)).head is not None:
        return search.session(SessionId(name), limit)
    if (seen := reader.seen(InboundKey(name)) or reader.seen(inbound_of(name))) is not None:
        return search.seen(seen)
    if (token := decode_token(name, RUN) or decode_token(name, RESPONSE)) is not None:
        if lines := search.turn(token.session, token.turn):
            return lines
        raise UnknownSessionError(f"there is no session {token.session} with a turn {token.turn}, which {name} means")
    if (outgoing := _outgoing_as(reader, name)) is not None:
        return search.delivery(outgoing, limit)
    if (place := _place_of(reader, name)) is not None:
        return search.turn(*place)
    raise UnknownSessionError(
        f"there is no session, message or turn {name}; only the last {_SESSIONS} sessions are searched for a turn"
    )


class _Search:
    def __init__(self, reader: Reader, *, now: float, alive: bool) -> None:
        self._reader = reader
        self._now = now
        self._alive = alive
        self._letters = {each.id: each for each in reader.dead_letters() if each.undelivered is not None}

    def session(self, session: SessionId, limit: int) -> list[TraceLine]:
        count = iter(range(1, limit))
        return self._lines(session, lambda _: next(count, None) is None)

    def turn(self, session: SessionId, turn: TurnId) -> list[TraceLine]:
        return self._lines(session, lambda received: received.turn == turn, only=turn)

    def seen(self, seen: Seen) -> list[TraceLine]:
        lines = self.turn(seen.session, seen.turn) if seen.session else []
        if lines:
            return lines
        names = (f"{prefix}:{seen.key}" for prefix in _ANSWERS_TO)
        found = (self._delivery(name) for name in names)
        return [taken_line(seen, [each for each in found if each is not None], now=self._now)]

    def delivery(self, outgoing: OutboxMessage | DeliveredMessage, limit: int) -> list[TraceLine]:
        if outgoing.turn is not None and outgoing.session is not None:
            return self.turn(outgoing.session, outgoing.turn)
        if outgoing.session is not None:
            return self.session(outgoing.session, limit)
        seen = self._reader.seen(InboundKey(outgoing.id.partition(":")[2]))
        if seen is None:
            raise UnknownSessionError(f"{outgoing.id} does not answer a known message")
        return self.seen(seen)

    def _lines(
        self, session: SessionId, enough: Callable[[MessageReceived], bool], only: TurnId | None = None
    ) -> list[TraceLine]:
        entries = self._read(session, enough)
        found = ((name, self._delivery(name)) for name in dict.fromkeys(outgoing_in(entries)))
        deliveries = {name: delivery for name, delivery in found if delivery is not None}
        keys = {entry.record.inbound for entry in entries if isinstance(entry.record, MessageReceived)}
        remembered = {key for key in keys if key is not None and self._reader.seen(key) is not None}
        return fold_trace(entries, deliveries, remembered, now=self._now, alive=self._alive, only=only)

    def _read(self, session: SessionId, enough: Callable[[MessageReceived], bool]) -> list[TurnRecord]:
        """Return the records of the whole conversation, in order, back to the message that is enough."""
        entries: list[TurnRecord] = []
        for entry in self._backwards(session):
            entries.append(entry)
            if isinstance(entry.record, MessageReceived) and enough(entry.record):
                break
        return entries[::-1]

    def _backwards(self, session: SessionId) -> Iterator[TurnRecord]:
        for head in _conversation(self._reader, session):
            for entry in backwards(self._reader, head.id, head.next_seq):
                if not isinstance(entry.record, BadRecord):
                    yield TurnRecord(session=head.id, seq=entry.seq, record=entry.record)

    def _delivery(self, name: str) -> Delivery | None:
        return self._reader.outgoing(name) or self._letters.get(name) or self._reader.sent(name)


def _conversation(reader: Reader, session: SessionId) -> list[Session]:
    """It, what it grew from and into, the newest first."""
    routes = (find_route(reader, Address(session=each, exact=True)) for each in find_family(reader, session))
    heads = [route.head for route in routes if route.head is not None]
    return sorted(heads, key=lambda head: (head.created_at, len(find_lineage(reader, head))), reverse=True)


def _outgoing_as(reader: Reader, name: str) -> OutboxMessage | DeliveredMessage | None:
    """Return the outbox message with that id, ours or the platform's. The latter may occur in several chats."""
    known = reader.outgoing(name) or reader.sent(name)
    known = known or next((each.undelivered for each in reader.dead_letters() if each.id == name), None)
    if known is not None:
        return known
    shown: list[OutboxMessage | DeliveredMessage] = [
        each for each in reader.outbox() if _shows(each, each.sent, name)
    ]
    message = name.rpartition(":")[2]
    shown += [each for each in reader.sent_with(message) if _shows(each, each.messages, name)]
    places = {f"{each.place.platform}:{each.place.chat}:{message}" for each in shown}
    if len(places) > 1:
        raise BadInputError(f"{name} could be any of {', '.join(sorted(places))}; type it as one of these")
    return shown[-1] if shown else None


def _shows(outgoing: OutboxMessage | DeliveredMessage, messages: tuple[str, ...], name: str) -> bool:
    chat, platform = outgoing.place.chat, outgoing.place.platform
    return any(name in (each, f"{chat}:{each}", f"{platform}:{chat}:{each}") for each in messages)


def _place_of(reader: Reader, name: str) -> tuple[SessionId, TurnId] | None:
    """Return the turn, and a session that holds records of it."""
    for head in reader.recent(_SESSIONS):
        first = max(0, head.next_seq - _RECORDS)
        for entry in backwards(reader, head.id, head.next_seq):
            if entry.seq < first:
                break
            record = entry.record
            if isinstance(record, BadRecord | ContextCarried):
                continue
            turn = getattr(record, "turn", None)
            if turn == name or (turn and len(name) >= _BEGINNING and turn.startswith(name)):
                return head.id, turn
    return None
