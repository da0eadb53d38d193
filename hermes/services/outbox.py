"""Outbox messages outside of a session: stored first, then handed to delivery. An operator can drop any message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from loguru import logger

from hermes.actors.commit import store
from hermes.actors.delivery.delivery_protocol import DropMessage, DropOutcome
from hermes.actors.kernel.ref import ActorDeadError, ActorRef
from hermes.domain.errors import AlreadySeenError, BadInputError, BusyError
from hermes.domain.operations import DropDeadLetter, Enqueue, See, set_aside
from hermes.domain.outbox_message import DeadLetter, DeliveredMessage, OutboxMessage
from hermes.domain.read.reader import Reader
from hermes.domain.turn.submission import Seen
from hermes.ports.chat import Outbox
from hermes.ports.given import Clock
from hermes.ports.outbox import OutboxControl
from hermes.ports.storage import Journal


class OutboxService(Outbox, OutboxControl):
    def __init__(
        self,
        journal: Journal,
        deliver: Callable[[Sequence[OutboxMessage]], None],
        *,
        clock: Clock,
        delivery: Callable[[], ActorRef[Any]],
    ) -> None:
        self._journal = journal
        self._deliver = deliver
        self._clock = clock
        self._delivery = delivery

    async def enqueue(self, outgoing: OutboxMessage) -> None:
        if not await self.is_known(outgoing.id):
            await store(self._journal, (Enqueue(outgoing=outgoing),))
            self._deliver((outgoing,))

    async def is_known(self, name: str) -> bool:
        return await self._journal.fetch(lambda reader: (reader.outgoing(name) or reader.sent(name)) is not None)

    async def progress(self, name: str) -> OutboxMessage | DeliveredMessage | DeadLetter | None:
        return await self._journal.fetch(lambda reader: _progress(reader, name))

    async def waiting(self) -> list[OutboxMessage]:
        return await self._journal.fetch(lambda reader: reader.outbox())

    async def drop(self, name: str, who: str) -> DeadLetter:
        outgoing = await self._journal.fetch(lambda reader: reader.outgoing(name))
        if outgoing is None:
            raise BadInputError(f"there is no message {name} in the outbox", code="unknown_outbox_message")
        match await self._ask(DropMessage(name=name, by=who)) if outgoing.final else DropOutcome.BUSY:
            case DropOutcome.BUSY:
                raise BusyError(f"{name} is being sent, or its turn still runs; try again, or stop the turn")
            case DropOutcome.ABSENT:  # its platform is not configured
                await store(self._journal, set_aside(outgoing, f"dropped by {who}", self._clock()))
        logger.info("outbox message {}: dropped by {}, kept as a dead letter", name, who)
        return await self._letter(name)

    async def delete_letter(self, name: str, who: str) -> DeadLetter:
        letter = await self._letter(name)
        await store(self._journal, (DropDeadLetter(id=name),))
        logger.info("dead letter {}: deleted by {}", name, who)
        return letter

    async def _ask(self, wish: DropMessage) -> DropOutcome:
        try:
            return cast("DropOutcome", await self._delivery().ask(wish, block=False))
        except ActorDeadError:  # restarting
            return DropOutcome.BUSY

    async def _letter(self, name: str) -> DeadLetter:
        letters = await self._journal.fetch(lambda reader: reader.dead_letters())
        letter = next((each for each in letters if each.id == name), None)
        if letter is None:
            raise BadInputError(f"there is no dead letter {name}", code="unknown_dead_letter")
        return letter

    async def see(self, seen: Seen) -> bool:
        try:
            await store(self._journal, (See(seen=seen),))
        except AlreadySeenError:
            return False
        return True


def _progress(reader: Reader, name: str) -> OutboxMessage | DeliveredMessage | DeadLetter | None:
    found = reader.outgoing(name) or reader.sent(name)
    return found or next((letter for letter in reader.dead_letters() if letter.id == name), None)
