"""The pictures of an album: an update each, one message together, also after one of them was edited.

Each is known by its own update, in whatever order and company they come again after a crash.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hermes.adapters.telegram.addressed import TelegramAddressing, TelegramIdentity
from hermes.adapters.telegram.update import album_of
from hermes.domain.types import InboundKey, Place
from hermes.ports.chat import Inbound


class Album:
    def __init__(self, ready_at: float) -> None:
        self.ready_at = ready_at
        self.complete = asyncio.Event()  # whatever had come by then is part of it
        self.done = asyncio.Event()
        self.taken = False
        self._updates: dict[int, Mapping[str, Any]] = {}  # by the messages' ids
        self._place: Place | None = None  # by which an edit is known to be one of it

    def add(self, update: Mapping[str, Any]) -> None:
        """A picture, or what became of one."""
        message = update.get("message") or update["edited_message"]
        number = int(message["message_id"])
        first = self._updates.get(number, update)
        self._updates[number] = {"update_id": first["update_id"], "message": message}

    def inbound(self, me: TelegramIdentity, manners: TelegramAddressing) -> Inbound | None:
        read = album_of([self._updates[number] for number in sorted(self._updates)], me, manners)
        if read is not None:
            self._place = read.place
        return read

    def edited(self, key: InboundKey, me: TelegramIdentity, manners: TelegramAddressing) -> Inbound | None:
        """All of it as it is now, in the place of what it was."""
        place = self._place
        read = self.inbound(me, manners)
        return replace(read, id=key, place=place, edited=True) if read is not None and place is not None else None


def album_name(update: Mapping[str, Any]) -> str:
    message = update.get("message") or update.get("edited_message")
    return str(message.get("media_group_id") or "") if isinstance(message, dict) else ""
