"""Search port: hits, what narrows a search, how much of the journal the index covers, and embeddings."""

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
    @property
    def similarity(self) -> float: ...  # to the query, of a message that was found by meaning; else 0


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


class Embedder(Protocol):
    """Turns texts into vectors whose directions are close if the texts mean the same.

    All methods block, except for reading the name. Raises StorageError or ConfigError if it cannot work.
    """

    @property
    def name(self) -> str: ...  # of the model; vectors of different models cannot be compared

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return a vector of length 1 for each text, as 16-bit floats."""

    def release(self) -> None:
        """Free memory. The next use loads the model again."""
