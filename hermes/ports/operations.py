"""The daemon as a whole, as an operator sees it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from hermes.domain.read.reader import StoreStats
from hermes.domain.read.views import ActorView


class Operations(Protocol):
    """What an operator can ask of the daemon as a whole."""

    def actors(self) -> list[ActorView]: ...
    async def store_stats(self) -> StoreStats: ...
    async def backup(self, target: Path) -> None: ...
    async def take_in(self, file: Path, *, trust: bool = False) -> Mapping[str, Any]:
        """Import an export. Returns a report. `trust`: its key, preferences, grants and prompts hold here, too."""

    async def verify(self) -> list[str]:
        """Problems of the store in plain words; none is an empty list."""

    def ready(self) -> str:
        """Empty when the daemon can take work, else the reason why not."""

    def version(self) -> str:
        """The daemon's version. As cheap as `model`: every request may ask."""

    def model(self) -> str:
        """The name of the first configured model."""

    def info(self) -> Mapping[str, Any]: ...  # goes through all live actors
    async def reload(self) -> Mapping[str, Any]:
        """Read the configuration again. What changed, by name, and what would after a restart."""

    def request_stop(self, reason: str) -> None: ...
    async def request_restart(self, reason: str, who: str = "") -> None:
        """Restart the daemon. Refused when it could not start again. `who`: platform and user of the person."""
