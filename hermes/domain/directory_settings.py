"""Settings of the session directory, and why it may hold turns back."""

from __future__ import annotations

from enum import StrEnum

from hermes.domain.session.protocol import TurnLimits
from hermes.domain.values import dataclass


class Held(StrEnum):
    """Why a turn that was cut off waits for the person's next message."""

    NOT = ""  # it goes on by itself
    CONFIGURED = "resume.when"
    CRASHES = "the daemon keeps crashing"


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectorySettings:
    idle_after_s: float
    max_live: int
    limits: TurnLimits
    memory_limit_bytes: int  # 0: none
    seen_for_s: float
    take_up: bool = True  # sessions with open work are brought back without waiting for somebody to write
    hold: Held = Held.NOT  # why their turns that were cut off wait for the person's next message, if they do
    resume_per_s: float = 1000.0  # how many are brought back in a second
