"""Supervision port: restart or park a failed actor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Park:
    reason: str


class RestartPolicy(Protocol):
    def __call__(self, deaths: Sequence[float], now: float) -> Restart | Park:
        """Decide about a child that crashed at these times; the last one is now."""
