"""One exchange between somebody outside and the daemon of the moment, with a network in between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from tests.simulation.outside import Outside

if TYPE_CHECKING:
    from tests.simulation.daemon import SimulatedDaemon


class Request:
    """Answers arrive in order, unless the daemon dies before they do."""

    def __init__(
        self,
        outside: Outside,
        work: Callable[[SimulatedDaemon, Request], Awaitable[object]],
        on: Callable[[Request, str, Any], None],
    ) -> None:
        self.id = outside.number("request")
        self.work = work
        self.task: asyncio.Task[None] | None = None
        self.over = False  # nobody listens any more
        self.gone = False  # the connection is
        self._outside = outside
        self._on = on
        self._last = 0.0

    def reply(self, what: str, value: object) -> None:
        """From the daemon: what it says is on the wire."""
        outside = self._outside
        self._last = max(self._last, outside.time() + outside.chance.uniform(0.0005, 0.02))
        outside.later(self._last - outside.time(), self._arrive, what, value)

    def lose(self) -> None:
        """The connection is gone. What was on the wire may still arrive."""
        self.gone = True
        if not self.over and self._outside.chance.random() < 0.5:
            self._arrive("lost", None)
        else:
            self.reply("lost", None)

    def _arrive(self, what: str, value: object) -> None:
        if self.over:
            return
        self.over = what in ("lost", "refused", "done")
        self._outside.note(f"{self.id} {what}")
        self._on(self, what, value)
