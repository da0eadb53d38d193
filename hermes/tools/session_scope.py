"""Session search limited to what a conversation may see: search everything, then filter by permission.

Child sessions are left out: they repeat what is in the conversation of their parent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from hermes.domain.access.role import Role
from hermes.domain.access.visibility import may_be_told_in
from hermes.domain.errors import UnknownSessionError
from hermes.domain.ids import Seq, SessionId
from hermes.domain.read.views import StoredMessage
from hermes.domain.session.state import Session
from hermes.domain.values import dataclass
from hermes.ports.search import Findings, Found, IndexProgress

T = TypeVar("T")
_FIRST = 50  # hits or sessions in the first query; each further query asks for four times as many
_LAST = 3_200


class ScopedSearch(Protocol):
    def __call__(
        self, query: str, *, limit: int, session: SessionId | None, role: str | None, since: float | None
    ) -> Awaitable[Findings]: ...


class Recent(Protocol):
    def __call__(self, limit: int) -> Awaitable[Sequence[Session]]: ...


class Messages(Protocol):
    def __call__(self, session: SessionId, seq: Seq | None, n: int) -> Awaitable[Sequence[StoredMessage]]:
        """Return up to n messages before `seq`, those at it and up to n after, oldest first; `None` is the end.

        Raises UnknownSessionError.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversations:
    """Stored conversations, all of them."""

    search: ScopedSearch
    messages: Messages
    recent: Recent
    heads: Callable[[Iterable[SessionId]], Awaitable[Mapping[SessionId, Session]]]


class Scope:
    def __init__(self, here: SessionId, role: Role, by: str, stored: Conversations) -> None:
        self._here = here
        self._role = role  # of the turn
        self._by = by  # whose turn it is
        self._stored = stored

    async def search(
        self, query: str, *, limit: int, session: SessionId | None, role: str | None, since: float | None
    ) -> Findings:
        """Return the best hit of each other conversation, or the hits in the conversation of `session`."""

        index: IndexProgress | None = None

        async def query_index(most: int) -> tuple[list[Found], bool]:
            nonlocal index
            findings = await self._stored.search(query, limit=most, session=session, role=role, since=since)
            found, index = findings.hits, findings.index
            allowed = await self._allowed(hit.session for hit in found)
            # The current conversation is already in the model's context.
            known = None if session is not None else self._here
            return [hit for hit in found if hit.session in allowed and hit.session != known], len(found) < most

        return Findings(hits=(await _until(limit, query_index))[:limit], index=index)

    async def recent(self, limit: int) -> Sequence[Session]:
        async def query_recent(most: int) -> tuple[list[Session], bool]:
            found = await self._stored.recent(most)
            allowed = await self._allowed(each.id for each in found)
            return [each for each in found if each.id in allowed], len(found) < most

        return (await _until(limit, query_recent))[:limit]

    async def require(self, session: SessionId) -> None:
        """Raise UnknownSessionError for a session that does not exist or may not be seen, without a difference."""
        if session not in await self._allowed([session]):
            raise UnknownSessionError(f"there is no session {session}")

    async def _allowed(self, sessions: Iterable[SessionId]) -> set[SessionId]:
        heads = await self._stored.heads({self._here, *sessions})
        here = heads.get(self._here)
        return {
            each
            for each, head in heads.items()
            if here is not None and head.assignment is None and may_be_told_in(here, head, self._role, self._by)
        }


async def _until(enough: int, query: Callable[[int], Awaitable[tuple[list[T], bool]]]) -> list[T]:
    """Repeat a query with a growing limit until it returns enough, or everything."""
    most = _FIRST
    while True:
        found, was_all = await query(most)
        if was_all or len(found) >= enough or most >= _LAST:
            return found
        most *= 4
