"""Source of a live view: how it reads the daemon and acts on it. Its methods block and raise HermesErrors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from hermes.domain.values import dataclass
from hermes.tui.top.sample import Sample

SORTS = ("state", "age", "mail", "tokens", "cost", "active")


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleWish:
    sort: str = "state"
    find: str = ""
    is_busy: bool = False
    children: bool = False  # child sessions too
    limit: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message of a transcript."""

    who: str
    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDetail:
    """Everything that the page of one session shows."""

    id: str
    title: str
    phase: str
    facts: str  # one line: platform, counters
    transcript: tuple[Said, ...]
    timeline: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What a session waits for."""

    session: str
    call: str
    question: str
    choices: tuple[str, ...]
    approval: bool


class LiveSource(Protocol):
    def sample(self, wish: SampleWish) -> Sample: ...
    def beginning(self, session: str) -> str:
        """Return the first message of a session; empty if it cannot be read."""

    def page(self, session: str) -> SessionDetail: ...
    def pending(self, session: str) -> Pending | None: ...
    def answer(self, pending: Pending, answer: str) -> None: ...
    def stop(self, session: str) -> None: ...
    def kill(self, process: str) -> None: ...
    def follow(self, session: str, show: Callable[[str], None], is_over: Callable[[], bool]) -> None:
        """Show text of live events until `is_over`. Returns early when the daemon ends the stream."""
