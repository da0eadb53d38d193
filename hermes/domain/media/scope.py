"""Scope of a received file: its chat, as a directory name of the media store."""

from __future__ import annotations

import hashlib
from typing import Final

from hermes.domain.source import Place

_SCOPE_CHARS: Final = 16
SCOPE_PATTERN: Final = rf"[0-9a-f]{{{_SCOPE_CHARS}}}"


def media_scope(platform: str, chat: str) -> str:
    """Return the directory name for one chat. The name does not reveal the chat."""
    return hashlib.sha256(f"{platform}\0{chat}".encode(errors="replace")).hexdigest()[:_SCOPE_CHARS]


def scope_of(place: Place | None) -> str:
    """Return the scope of a conversation at this place; empty for one that is in no chat."""
    return "" if place is None else media_scope(place.platform, place.chat)
