"""Stored form of a platform's home channel, which gets the messages that belong to no conversation."""

from __future__ import annotations

import json

from hermes.domain.ids import SessionKey
from hermes.domain.source import Place

PREFIX = "chat.home."  # how the names of the facts begin


def fact_of(platform: str) -> str:
    return f"{PREFIX}{platform}"


def encode(place: Place, key: SessionKey | None = None) -> bytes:
    """`key`: of the conversation that its chooser has there."""
    return json.dumps({"chat": place.chat, "thread": place.thread, **({"key": key} if key else {})}).encode()


def decode(platform: str, raw: bytes | None) -> Place | None:
    if raw is None:
        return None
    fields = json.loads(raw)
    return Place(platform=platform, chat=fields["chat"], thread=fields.get("thread", ""))


def key_in(raw: bytes | None) -> SessionKey | None:
    """Return the key of the conversation there; None for a channel that was chosen before keys were stored."""
    key = None if raw is None else json.loads(raw).get("key")
    return SessionKey(key) if isinstance(key, str) else None
