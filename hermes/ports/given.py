"""What comes in from outside so that decisions stay pure: the time, and new identities."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from hermes.domain.types import SessionId, TurnId
from hermes.domain.values import dataclass

Clock: TypeAlias = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdSource:
    """Where new ids come from, so that tests can foresee them."""

    session: Callable[[float], SessionId]  # takes the time
    turn: Callable[[], TurnId]
