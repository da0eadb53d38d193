"""Port of the channel directory: chats by name, and the places of delivery targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hermes.domain.event.channel import Channel
from hermes.domain.source import Place


class Channels(Protocol):
    async def channels(self, platform: str = "") -> list[Channel]:
        """Return all known chats, by platform and name."""

    async def places(self, texts: Sequence[str], origin: Place | None = None) -> list[Place]:
        """Return the places of delivery targets. Raises BadInputError for one that leads nowhere."""
