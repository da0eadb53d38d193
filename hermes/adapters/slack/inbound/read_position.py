"""Read position of each workspace, by team: in memory, and saved now and then."""

from __future__ import annotations

import json

from hermes.ports.chat import ChatIntake

_NOTE = "slack.heard_until"


class ReadPosition:
    def __init__(self) -> None:
        self._moments: dict[str, float] | None = None  # None: not loaded yet
        self._unsaved = False

    async def of(self, team: str, chat_intake: ChatIntake) -> float | None:
        """Return the read position; None if there is none. Raises as the chat intake does."""
        if self._moments is None:
            stored = await chat_intake.noted(_NOTE)
            if self._moments is None:  # not loaded by another task meanwhile
                self._moments = json.loads(stored or b"{}")
        return self._moments.get(team)

    def advance(self, team: str, moment: float) -> None:
        """Advance the position. Call `of` first."""
        if self._moments is not None:
            self._moments[team] = moment
            self._unsaved = True

    async def save(self, chat_intake: ChatIntake) -> None:
        """Save the positions. Raises as the chat intake does."""
        if self._unsaved:
            self._unsaved = False
            await chat_intake.note(_NOTE, json.dumps(self._moments).encode())
