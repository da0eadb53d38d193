"""Retention in a simulated life: conversations that were not used are deleted, at any moment, and nothing else is.

Chance is a generator of its own, so that the seeds without sweeps stay what they were.
"""

from __future__ import annotations

from functools import partial
from random import Random

from hermes.domain.retention import is_expiring
from hermes.domain.session.state import Session
from hermes.services.retention import SessionRetention
from tests.simulation.daemon import SimulatedDaemon
from tests.simulation.outside import Outside
from tests.simulation.people import Town
from tests.simulation.request import Request

KEPT_S = (0.5, 5.0, 30.0)
FOREVER_S = 1e9


class Sweeps:
    def __init__(self, outside: Outside, town: Town) -> None:
        self._outside = outside
        self._town = town
        self._chance = Random(f"sweeps {outside.seed}")
        self._often_s = self._chance.choice((3.0, 10.0))
        self.happen = self._chance.random() < 0.4

    def begin(self) -> None:
        if self.happen:
            self._outside.later(self._chance.expovariate(1 / self._often_s), self._sweep)

    def _sweep(self) -> None:
        if self._outside.faulty:
            self._ask(self._chance.choice(KEPT_S))
            self.begin()

    def unfinished(self) -> list[Session]:
        """Return sessions whose deletion was interrupted."""
        return [row for row in self._outside.disk.sessions() if is_expiring(row)]

    def finish(self) -> None:
        """Delete nothing but what an interrupted deletion left."""
        if self.unfinished():
            self._ask(FOREVER_S)

    def _ask(self, keep_s: float) -> None:
        self._town.ask(partial(self._prune, keep_s), lambda *_: None)

    async def _prune(self, keep_s: float, daemon: SimulatedDaemon, _: Request) -> object:
        outside = self._outside
        outside.unused_before = max(outside.unused_before, outside.wall() - keep_s)
        processes = daemon.system.processes
        retention = SessionRetention(
            daemon.journal,
            erase=daemon.desk.erase_unused,
            has_processes=lambda root: any(view.ended_at is None for view in processes.views(root)),
            clock=outside.wall,
        )
        pruned = await retention.prune(keep_s)
        outside.note(f"swept {keep_s} {' '.join(pruned)}")
        return pruned
