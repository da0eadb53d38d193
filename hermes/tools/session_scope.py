"""Session search limited to what a conversation may see: search everything, then filter by permission.

Child sessions are left out: they repeat what is in the conversation of their parent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from hermes.domain.access.role import OWNER_SURFACES, Role
from hermes.domain.access.visibility import may_be_told_in
from hermes.domain.errors import UnknownSessionError
from hermes.domain.ids import Seq, SessionId
from hermes.domain.read.views import StoredMessage
from hermes.domain.session.state import Session
from hermes.domain.values import dataclass
from hermes.ports.search import NO_FILTER, OWNER, Findings, Found, IndexProgress, SearchFilter

T = TypeVar("T")
_FIRST = 50  # hits or sessions in the first query; each further query asks for four times as many
_LAST = 3_200


class ScopedSearch(Protocol):
    def __call__(self, query: str, *, limit: int, only: SearchFilter) -> Awaitable[Findings]: ...


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
    def __init__(self, here: SessionId | None, role: Role, by: str, stored: Conversations) -> None:
        self._here = here  # None: outside of a conversation, where only the owner sees others
        self._role = role  # of the turn
        self._by = by  # whose turn it is
        self._stored = stored

    async def search(
        self, query: str, *, limit: int, only: SearchFilter = NO_FILTER, here_too: bool = False
    ) -> Findings:
        """Return the best hit of each other conversation, or the hits in the conversation of one session.

        `here_too` includes the current conversation.
        """

        index: IndexProgress | None = None

        async def query_index(most: int) -> tuple[list[Found], bool]:
            nonlocal index
            findings = await self._stored.search(query, limit=most, only=only)
            found, index = findings.hits, findings.index
            allowed = await self._allowed(hit.session for hit in found)
            # The current conversation is already in the model's context.
            known = None if here_too or only.session is not None else self._here
            return [hit for hit in found if hit.session in allowed and hit.session != known], len(found) < most

        return Findings(hits=(await _until(limit, query_index))[:limit], index=index)

    async def recent(self, limit: int, *, only: SearchFilter = NO_FILTER) -> Sequence[Session]:
        """Return the sessions that were active last. Of the filter, time, platform and person count."""

        async def query_recent(most: int) -> tuple[list[Session], bool]:
            found = await self._stored.recent(most)
            allowed = await self._allowed(each.id for each in found)
            seen = [each for each in found if each.id in allowed and _passes(each, only)]
            return seen, len(found) < most

        return (await _until(limit, query_recent))[:limit]

    async def require(self, session: SessionId) -> None:
        """Raise UnknownSessionError for a session that does not exist or may not be seen, without a difference."""
        if session not in await self._allowed([session]):
            raise UnknownSessionError(f"there is no session {session}")

    async def _allowed(self, sessions: Iterable[SessionId]) -> set[SessionId]:
        wanted = set(sessions)
        heads = await self._stored.heads(wanted if self._here is None else {self._here, *wanted})
        here = None if self._here is None else heads.get(self._here)
        return {each for each, head in heads.items() if head.assignment is None and self._may_see(head, here)}

    def _may_see(self, other: Session, here: Session | None) -> bool:
        if self._here is None:
            platform = self._by.partition(":")[0]
            return self._role is Role.OWNER and platform in OWNER_SURFACES
        return here is not None and may_be_told_in(here, other, self._role, self._by)


def _passes(session: Session, only: SearchFilter) -> bool:
    owner = f"{session.platform}:{session.owner}" if session.owner else ""
    return (
        (only.since is None or session.active_at >= only.since)
        and (only.until is None or session.active_at <= only.until)
        and only.platform in ("", session.platform)
        and only.person in ("", owner or (OWNER if session.platform in OWNER_SURFACES else ""))
    )


async def _until(enough: int, query: Callable[[int], Awaitable[tuple[list[T], bool]]]) -> list[T]:
    """Repeat a query with a growing limit until it returns enough, or everything."""
    most = _FIRST
    while True:
        found, was_all = await query(most)
        if was_all or len(found) >= enough or most >= _LAST:
            return found
        most *= 4
