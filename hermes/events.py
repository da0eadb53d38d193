"""What happens, as it happens: the live stream that adapters and operators can watch.

Live events are not the truth, the journal is: a slow reader may miss some, a restart forgets them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from hermes.values import dataclass

if TYPE_CHECKING:
    from hermes.types import Failure, Phase, SessionId, TurnId, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAccepted:
    """The message is on disk. `position` is how many turns go first."""

    session: SessionId
    turn: TurnId
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnBegan:
    session: SessionId
    turn: TurnId
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    session: SessionId
    turn: TurnId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAnswered:
    """The answer is on disk."""

    session: SessionId
    turn: TurnId
    text: str
    model: str
    finish_reason: str
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnGaveUp:
    """The turn ended without an answer, and the journal says why."""

    session: SessionId
    turn: TurnId
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseChanged:
    session: SessionId
    phase: Phase
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorFailed:
    name: str
    problem: str
    verdict: str  # what supervision does about it


Event: TypeAlias = TurnAccepted | TurnBegan | TextDelta | TurnAnswered | TurnGaveUp | PhaseChanged | ActorFailed
TurnOutcome: TypeAlias = TurnAnswered | TurnGaveUp
