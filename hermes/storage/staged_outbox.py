"""Outbox messages in a write plan: enqueued, updated by delivery attempts, delivered, cancelled, erased."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from hermes.domain.ids import SessionId
from hermes.domain.operations import Cancel, Enqueue, MarkDelivered, RecordDelivery
from hermes.domain.outbox_message import DeliveredMessage, OutboxMessage
from hermes.domain.values import replace
from hermes.storage import codec
from hermes.storage.codec import DamagedError, UnreadableError
from hermes.storage.row_keys import OUTBOX, SENT, text_key
from hermes.storage.stage import StagedWrites


class StagedOutbox:
    def __init__(self, stage: StagedWrites, pack: Callable[[object], bytes]) -> None:
        self._stage = stage
        self._pack = pack

    def perform(self, operation: Enqueue | RecordDelivery | MarkDelivered | Cancel, *, order: int) -> None:
        """Stage an operation. A new message gets the position `order` in the outbox."""
        match operation:
            case Enqueue(outgoing=outgoing):
                self._enqueue(outgoing, order)
            case RecordDelivery():
                self._record(operation)
            case MarkDelivered(sent=sent):
                key = text_key(sent.id)
                self._stage.put(OUTBOX, key, None)
                self._stage.put(SENT, key, codec.seal(key, self._pack(sent)))
            case Cancel(id=name):
                self._stage.put(OUTBOX, text_key(name), None)
            case _:
                assert_never(operation)

    def erase(self, session: SessionId) -> None:
        """Delete all messages of a session, delivered or not. Reads both tables."""
        for kind, table in ((OutboxMessage, OUTBOX), (DeliveredMessage, SENT)):
            for key, value in self._stage.scan(table):
                if _session_in(kind, key, value) == session:
                    self._stage.put(table, key, None)

    def _enqueue(self, outgoing: OutboxMessage, order: int) -> None:
        """Add a message. A final version replaces a known message and keeps its delivery state."""
        known = self._get(outgoing.id)
        if known is None:
            self._put(replace(outgoing, order=order))
        elif outgoing.final:
            self._put(
                replace(
                    outgoing,
                    order=known.order,
                    sent=known.sent,
                    sending=known.sending,
                    repeated=known.repeated,
                    superseded=known.superseded,
                )
            )

    def _record(self, delivery: RecordDelivery) -> None:
        known = self._get(delivery.id)
        if known is None:
            return
        self._put(
            replace(
                known,
                sent=delivery.sent,
                sending=delivery.sending,
                tries=delivery.tries,
                problem=delivery.problem,
                refusals=delivery.refusals,
                repeated=delivery.repeated,
                superseded=delivery.superseded,
            )
        )

    def _get(self, name: str) -> OutboxMessage | None:
        key = text_key(name)
        value = self._stage.get(OUTBOX, key)
        return None if value is None else codec.open_as(OutboxMessage, key, value)

    def _put(self, outgoing: OutboxMessage) -> None:
        key = text_key(outgoing.id)
        self._stage.put(OUTBOX, key, codec.seal(key, self._pack(outgoing)))


def _session_in(kind: type[OutboxMessage | DeliveredMessage], key: bytes, value: bytes) -> SessionId | None:
    try:
        return codec.open_as(kind, key, value).session
    except (DamagedError, UnreadableError):
        return None
