"""Search port: hits, and how much of the journal the index covers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hermes.domain.ids import Seq, SessionId
from hermes.domain.values import dataclass


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


class Search(Protocol):
    """Full-text search over the messages of all sessions."""

    async def search(
        self,
        query: str,
        *,
        limit: int,
        session: SessionId | None = None,
        role: str | None = None,
        since: float | None = None,
    ) -> Findings: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    hits: Sequence[Found]
    index: IndexProgress | None = None  # None: the index covers everything that was written before the search
