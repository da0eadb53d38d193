"""Heads of the sessions in memory, each as it is on disk: an answer without a read for callers on the event loop."""

from __future__ import annotations

from hermes.domain.ids import SessionId
from hermes.domain.session.state import Session


class LiveHeads:
    def __init__(self) -> None:
        self._heads: dict[SessionId, Session] = {}

    def restart(self) -> dict[SessionId, Session]:
        """Start with no session in memory. The directory's sessions fill what is returned."""
        self._heads = {}
        return self._heads

    def get(self, session: SessionId) -> Session | None:
        return self._heads.get(session)
