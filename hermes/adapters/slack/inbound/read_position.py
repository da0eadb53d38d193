"""Up to when each workspace was listened to, by its team: kept in memory, and on disk now and then."""

from __future__ import annotations

import json

from hermes.ports.chat import ChatEdge

_NOTE = "slack.heard_until"


class ReadPosition:
    def __init__(self) -> None:
        self._moments: dict[str, float] | None = None  # None: nobody has looked at the disk yet
        self._unsaved = False

    async def of(self, team: str, edge: ChatEdge) -> float | None:
        """None: it was never listened to. Raises as the edge does."""
        if self._moments is None:
            stored = await edge.noted(_NOTE)
            if self._moments is None:  # nobody was faster, who may know more
                self._moments = json.loads(stored or b"{}")
        return self._moments.get(team)

    def advance(self, team: str, moment: float) -> None:
        """Only after it was asked for."""
        if self._moments is not None:
            self._moments[team] = moment
            self._unsaved = True

    async def save(self, edge: ChatEdge) -> None:
        """Raises as the edge does."""
        if self._unsaved:
            self._unsaved = False
            await edge.note(_NOTE, json.dumps(self._moments).encode())
