"""Inputs that keep decisions pure: the clock and the source of new ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from hermes.domain.ids import SessionId, TurnId
from hermes.domain.values import dataclass

Clock: TypeAlias = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdSource:
    """Source of new ids. Tests replace it to get known ids."""

    session: Callable[[float], SessionId]  # takes the current time
    turn: Callable[[], TurnId]
    process: Callable[[], str]
