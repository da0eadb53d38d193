"""Loop lag: how late the event loop runs a timer, measured once a second."""

from __future__ import annotations

import asyncio

from hermes.ports.metrics import LAG_BOUNDS_S, Distribution

_EVERY_S = 1.0


class LoopLag:
    def __init__(self) -> None:
        self.lag_s = Distribution(LAG_BOUNDS_S)

    async def run(self) -> None:
        """Measure until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _EVERY_S
            await asyncio.sleep(_EVERY_S)
            self.lag_s.observe(max(0.0, loop.time() - due))
