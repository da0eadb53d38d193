"""Loop lag: how late the event loop runs a timer, measured once a second."""

from __future__ import annotations

import asyncio
from collections import deque

from hermes.ports.metrics import LAG_BOUNDS_S, Distribution

_EVERY_S = 1.0
_KEPT = 60


class LoopLag:
    def __init__(self) -> None:
        self.lag_s = Distribution(LAG_BOUNDS_S)
        self.recent_s: deque[float] = deque(maxlen=_KEPT)

    async def run(self) -> None:
        """Measure until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _EVERY_S
            await asyncio.sleep(_EVERY_S)
            lag_s = max(0.0, loop.time() - due)
            self.lag_s.observe(lag_s)
            self.recent_s.append(lag_s)
