"""Search port: hits, what narrows a search, and how much of the journal the index covers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from hermes.domain.ids import Seq, SessionId
from hermes.domain.values import dataclass

OWNER: Final = "owner"  # the person of what is written on the owner's own surfaces


class Found(Protocol):
    """A search hit: one message of a session."""

    @property
    def session(self) -> SessionId: ...
    @property
    def seq(self) -> Seq: ...
    @property
    def at(self) -> float: ...
    @property
    def role(self) -> str: ...
    @property
    def platform(self) -> str: ...
    @property
    def person(self) -> str: ...  # PLATFORM:USER or OWNER; empty: unknown
    @property
    def snippet(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexProgress:
    """Position of the index in the journal, oldest records first. Positions include erased records."""

    indexed: int
    total: int
    building: bool  # False: the next search, or a pass within a minute, indexes the rest

    @property
    def percent(self) -> int:
        """Percentage, rounded down: 100 only when everything is indexed."""
        return 100 * self.indexed // self.total if self.indexed < self.total else 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """What narrows a search. The default narrows nothing."""

    session: SessionId | None = None  # only the conversation of this session
    role: str | None = None
    since: float | None = None
    until: float | None = None
    platform: str = ""
    person: str = ""  # PLATFORM:USER or OWNER: their messages, and the answers to them

    def admits(self, found: Found) -> bool:
        """Return whether a hit passes. The session is not checked."""
        return (
            (self.role is None or found.role == self.role)
            and (self.since is None or found.at >= self.since)
            and (self.until is None or found.at <= self.until)
            and self.platform in ("", found.platform)
            and self.person in ("", found.person)
        )


NO_FILTER: Final = SearchFilter()


class Search(Protocol):
    """Search over the messages of all sessions."""

    async def search(self, query: str, *, limit: int, only: SearchFilter = NO_FILTER) -> Findings: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    hits: Sequence[Found]
    index: IndexProgress | None = None  # None: the index covers everything that was written before the search
