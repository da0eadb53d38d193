"""Rate window: the times of recent events, and whether one more is within the limit. Pure."""

from __future__ import annotations

from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RateWindow:
    most: int
    within_s: float = 60.0
    times: tuple[float, ...] = ()

    def admit(self, now: float) -> RateWindow | None:
        """Return the window with an event at this time; None if that would be one too many."""
        recent = tuple(at for at in self.times if now - at < self.within_s)
        if len(recent) >= self.most:
            return None
        return RateWindow(most=self.most, within_s=self.within_s, times=(*recent, now))
