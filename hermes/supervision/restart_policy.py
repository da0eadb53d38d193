"""Restart intensity: restart or park a child, from the times of its deaths. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.domain.values import dataclass
from hermes.ports.supervision import Park, Restart, RestartPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartIntensity(RestartPolicy):
    """At most `max_restarts` within `within_s`; each one waits twice as long as the one before."""

    max_restarts: int = 3
    within_s: float = 60.0
    first_delay_s: float = 0.05
    max_delay_s: float = 5.0

    def __call__(self, deaths: Sequence[float], now: float) -> Restart | Park:
        recent = [at for at in deaths if now - at < self.within_s]
        if len(recent) > self.max_restarts:
            return Park(reason=f"it died {len(recent)} times within {self.within_s:.0f} s")
        return Restart(after_s=min(self.max_delay_s, self.first_delay_s * 2 ** (len(recent) - 1)))
