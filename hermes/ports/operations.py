"""Operations port: what an operator can do with the whole daemon."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from hermes.domain.ids import SessionId
from hermes.domain.read.live import LiveQuery
from hermes.domain.read.reader import StoreStats
from hermes.domain.read.views import ActorView
from hermes.ports.metrics import DaemonFigures, LiveSample


class Operations(Protocol):
    """Reads and controls the whole daemon."""

    def actors(self) -> list[ActorView]: ...
    async def store_stats(self) -> StoreStats: ...
    async def backup(self, target: Path) -> None: ...
    async def take_in(self, file: Path, *, trust: bool = False) -> Mapping[str, Any]:
        """Import an export and return a report. With `trust`, its key, preferences, grants and prompts apply."""

    async def verify(self) -> list[str]:
        """Return the problems of the store; empty if there are none."""

    async def prune(self, older_than_s: float, *, dry_run: bool = False) -> list[SessionId]:
        """Delete conversations that were not used for that long. Return one session of each."""

    async def figures(self) -> DaemonFigures:
        """Return the figures for metrics. Visits all live actors and reads the store."""

    async def live(self, query: LiveQuery) -> LiveSample:
        """Return a sample for a live view. Reads the store's statistics only, and lists `query.limit` sessions."""

    def ready(self) -> str:
        """Return why the daemon cannot take work; empty if it can."""

    def version(self) -> str:
        """Return the daemon's version. Called for every request, so it must be cheap."""

    def model(self) -> str:
        """Return the name of the first configured model. As cheap as `version`."""

    def info(self) -> Mapping[str, Any]: ...  # visits all live actors
    async def reload(self, *, dry_run: bool = False) -> Mapping[str, Any]:
        """Reload the configuration. Returns the settings that changed and those that need a restart."""

    def request_stop(self, reason: str) -> None: ...
    async def request_restart(self, reason: str, who: str = "") -> None:
        """Restart the daemon. Raises if the new process could not start. `who`: platform and user of the person."""
