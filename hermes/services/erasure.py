"""Forgetting a whole conversation: a session and everything it grew from or into.

First all of it ends, then it goes. In between somebody may take it up again; what is written to meanwhile is not what
had ended, and ends once more, so that nothing ever runs for a session that is gone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hermes.actors.commit import store
from hermes.actors.journal import ActorJournal
from hermes.domain.errors import SequenceConflictError, UnknownSessionError
from hermes.domain.operations import Erase
from hermes.domain.read.lineage import find_family, find_head
from hermes.domain.types import Phase, SessionId

_About = Callable[[SessionId], Awaitable[None]]


class Erasing:
    def __init__(self, journal: ActorJournal, *, end: _About, erased: _About) -> None:
        """`end` has a session end, if it has not, and leave memory; `erased` is told what is gone."""
        self._journal = journal
        self._end = end
        self._erased = erased
        self._over: list[SessionId] = []

    async def erase(self, session: SessionId) -> None:
        await self._end_all(session)
        if not self._over:
            raise UnknownSessionError(f"there is no session {session}")
        for member in self._over:  # while it goes through them there may come more
            while not await self._gone(member):
                await self._end(member)
                await self._end_all(member)
            await self._erased(member)

    async def _end_all(self, session: SessionId) -> None:
        """Meanwhile another may come of one by a compression."""
        while new := [each for each in await self._family(session) if each not in self._over]:
            for member in new:
                await self._end(member)
                self._over.append(member)

    async def _family(self, session: SessionId) -> tuple[SessionId, ...]:
        return await self._journal.fetch(lambda reader: find_family(reader, session))

    async def _gone(self, session: SessionId) -> bool:
        """Not if it goes on."""
        head = await self._journal.fetch(lambda reader: find_head(reader, session))
        if head is None:
            return True
        if head.phase is not Phase.ENDED:
            return False
        try:
            await store(self._journal, (Erase(session=session, expected_seq=head.next_seq),))
        except SequenceConflictError:
            return False
        except UnknownSessionError:
            pass
        return True
