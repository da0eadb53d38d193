"""An album: one update per picture, taken together as one message, also after an edit of a picture.

Each picture has its own update id, so redelivery after a crash may group them differently.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from hermes.adapters.telegram.addressed import TelegramAddressing, TelegramIdentity
from hermes.adapters.telegram.update import album_of
from hermes.domain.ids import InboundKey
from hermes.domain.source import Place
from hermes.domain.values import replace
from hermes.ports.chat import Inbound


class Album:
    def __init__(self, ready_at: float) -> None:
        self.ready_at = ready_at
        self.complete = asyncio.Event()  # no more pictures are expected
        self.done = asyncio.Event()
        self.taken = False
        self._updates: dict[int, Mapping[str, Any]] = {}  # by message id
        self._place: Place | None = None  # identifies the message that an edit replaces

    def add(self, update: Mapping[str, Any]) -> None:
        """Add a picture, or replace it with its edited version."""
        message = update.get("message") or update["edited_message"]
        number = int(message["message_id"])
        first = self._updates.get(number, update)
        self._updates[number] = {"update_id": first["update_id"], "message": message}

    def inbound(self, identity: TelegramIdentity, addressing: TelegramAddressing) -> Inbound | None:
        read = album_of([self._updates[number] for number in sorted(self._updates)], identity, addressing)
        if read is not None:
            self._place = read.place
        return read

    def edited(self, key: InboundKey, identity: TelegramIdentity, addressing: TelegramAddressing) -> Inbound | None:
        """Return the whole album as an edit of the message that was taken."""
        place = self._place
        read = self.inbound(identity, addressing)
        return replace(read, id=key, place=place, edited=True) if read is not None and place is not None else None


def album_name(update: Mapping[str, Any]) -> str:
    message = update.get("message") or update.get("edited_message")
    return str(message.get("media_group_id") or "") if isinstance(message, dict) else ""
