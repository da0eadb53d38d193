"""Erasure of a whole conversation: a session with its ancestors, descendants and child sessions.

First all sessions end, then they are erased. A session that was resumed or written to in between ends again before it
is erased, so no work ever runs for an erased session.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hermes.actors.commit import store
from hermes.domain.child.child import PREFIX
from hermes.domain.errors import SequenceConflictError, UnknownSessionError
from hermes.domain.ids import SessionId
from hermes.domain.operations import Erase, PutFact
from hermes.domain.read.lineage import find_family, find_head
from hermes.domain.read.reader import Reader
from hermes.domain.records import ChildStarted
from hermes.domain.session.state import Phase, Session
from hermes.ports.storage import Journal

_SessionCallback = Callable[[SessionId], Awaitable[None]]


def _with_children(reader: Reader, family: tuple[SessionId, ...]) -> tuple[SessionId, ...]:
    """Return the sessions and the child sessions that they started, which hold parts of their messages."""
    found = list(family)
    for session in found:  # a child's own children are appended meanwhile
        records = (entry.record for entry in reader.log(session))
        children = (record.child for record in records if isinstance(record, ChildStarted))
        found += [child for child in children if child not in found and find_head(reader, child) is not None]
    return tuple(found)


class Erasure:
    def __init__(self, journal: Journal, *, end: _SessionCallback, erased: _SessionCallback) -> None:
        """`end` ends a session and unloads its actor. `erased` is called after a session was erased."""
        self._journal = journal
        self._end = end
        self._erased = erased
        self._ended: list[SessionId] = []

    async def erase(self, session: SessionId) -> None:
        await self._end_all(session)
        if not self._ended:
            raise UnknownSessionError(f"there is no session {session}")
        for member in self._ended:  # _end_all appends to the list meanwhile
            while not await self._erase_ended(member):
                await self._end(member)
                await self._end_all(member)
            await self._erased(member)

    async def _end_all(self, session: SessionId) -> None:
        """End all sessions of the family, including those that a compression creates meanwhile."""
        while new := [each for each in await self._family(session) if each not in self._ended]:
            for member in new:
                await self._end(member)
                self._ended.append(member)

    async def _family(self, session: SessionId) -> tuple[SessionId, ...]:
        return await self._journal.fetch(lambda reader: _with_children(reader, find_family(reader, session)))

    async def _erase_ended(self, session: SessionId) -> bool:
        """Erase a session. Returns False if it continues or was written to meanwhile."""
        head = await self._journal.fetch(lambda reader: find_head(reader, session))
        if head is None:
            return True
        if head.phase is not Phase.ENDED:
            return False
        try:
            await store(self._journal, (Erase(session=session, expected_seq=head.next_seq), *_duty_of(head)))
        except SequenceConflictError:
            return False
        except UnknownSessionError:
            pass
        return True


def _duty_of(head: Session) -> tuple[PutFact, ...]:
    """Return the end of a child's duty: else the next daemon would start a deleted task again."""
    return () if head.assignment is None else (PutFact(name=PREFIX + head.assignment.key, value=None),)
