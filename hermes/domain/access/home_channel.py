"""Stored form of a platform's home channel, which gets the messages that belong to no conversation."""

from __future__ import annotations

import json

from hermes.domain.source import Place
from hermes.domain.values import replace

PREFIX = "chat.home."  # how the names of the facts begin


def fact_of(platform: str) -> str:
    return f"{PREFIX}{platform}"


def encode(place: Place) -> bytes:
    return json.dumps({"chat": place.chat, "thread": place.thread}).encode()


def decode(platform: str, raw: bytes | None) -> Place | None:
    return None if raw is None else replace(Place(platform=platform, chat=""), **json.loads(raw))
