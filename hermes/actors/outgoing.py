"""What adapters and others owe people directly, without a session: stored first, then handed to delivery."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes.actors.journal import ActorJournal
from hermes.actors.storing import store
from hermes.errors import AlreadySeenError
from hermes.ports.storage import Oblige, Reader, See
from hermes.types import DeadLetter, Obligation, Seen, Sent


class ObligationDesk:
    def __init__(self, journal: ActorJournal, deliver: Callable[[Sequence[Obligation]], None]) -> None:
        self._journal = journal
        self._deliver = deliver

    async def oblige(self, owed: Obligation) -> None:
        """Have it said; what was said before under the same id is not said again."""
        if not await self.is_known(owed.id):
            await store(self._journal, (Oblige(obligation=owed),))
            self._deliver((owed,))

    async def is_known(self, name: str) -> bool:
        return await self._journal.fetch(lambda reader: (reader.owed(name) or reader.sent(name)) is not None)

    async def progress(self, name: str) -> Obligation | Sent | DeadLetter | None:
        return await self._journal.fetch(lambda reader: _progress(reader, name))

    async def see(self, seen: Seen) -> bool:
        """Whether this inbound id is new; from now on it is not."""
        try:
            await store(self._journal, (See(seen=seen),))
        except AlreadySeenError:
            return False
        return True


def _progress(reader: Reader, name: str) -> Obligation | Sent | DeadLetter | None:
    found = reader.owed(name) or reader.sent(name)
    return found or next((letter for letter in reader.dead_letters() if letter.id == name), None)
