"""Settings of the session directory."""

from __future__ import annotations

from hermes.domain.cause.cause import HoldCause
from hermes.domain.session.protocol import TurnLimits
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectorySettings:
    idle_after_s: float
    max_live: int
    limits: TurnLimits
    memory_limit_bytes: int  # 0: none
    seen_for_s: float
    take_up: bool = True  # sessions with open work are activated without waiting for a message
    hold: HoldCause = HoldCause.NONE  # why their interrupted turns wait for the person's next message
    resume_per_s: float = 50.0  # sessions to activate per second
