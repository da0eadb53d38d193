"""Outbox messages outside of a session: stored first, then handed to delivery."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes.actors.commit import store
from hermes.domain.errors import AlreadySeenError
from hermes.domain.operations import Enqueue, See
from hermes.domain.outbox_message import DeadLetter, DeliveredMessage, OutboxMessage
from hermes.domain.read.reader import Reader
from hermes.domain.turn.submission import Seen
from hermes.ports.chat import Outbox
from hermes.ports.storage import Journal


class OutboxService(Outbox):
    def __init__(self, journal: Journal, deliver: Callable[[Sequence[OutboxMessage]], None]) -> None:
        self._journal = journal
        self._deliver = deliver

    async def enqueue(self, outgoing: OutboxMessage) -> None:
        if not await self.is_known(outgoing.id):
            await store(self._journal, (Enqueue(outgoing=outgoing),))
            self._deliver((outgoing,))

    async def is_known(self, name: str) -> bool:
        return await self._journal.fetch(lambda reader: (reader.outgoing(name) or reader.sent(name)) is not None)

    async def progress(self, name: str) -> OutboxMessage | DeliveredMessage | DeadLetter | None:
        return await self._journal.fetch(lambda reader: _progress(reader, name))

    async def see(self, seen: Seen) -> bool:
        try:
            await store(self._journal, (See(seen=seen),))
        except AlreadySeenError:
            return False
        return True


def _progress(reader: Reader, name: str) -> OutboxMessage | DeliveredMessage | DeadLetter | None:
    found = reader.outgoing(name) or reader.sent(name)
    return found or next((letter for letter in reader.dead_letters() if letter.id == name), None)
