"""Search as tools see it: what was found, and how much of the journal the index covers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hermes.domain.types import Seq, SessionId
from hermes.domain.values import dataclass


class Found(Protocol):
    """A place where something was said."""

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
    """How far the index has read the journal, oldest records first. Positions count erased records, too."""

    indexed: int
    total: int
    building: bool  # False: the rest is taken in by the next search, or within a minute

    @property
    def percent(self) -> int:
        """Rounded down: 100 only when everything is indexed."""
        return 100 * self.indexed // self.total if self.indexed < self.total else 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    hits: Sequence[Found]
    index: IndexProgress | None = None  # None: it covers everything that was written before the search
