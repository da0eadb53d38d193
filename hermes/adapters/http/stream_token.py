"""Short-lived tokens for the query string, for browsers: EventSource and images cannot send a header.

A token is signed with the owner's key and names its scope, its API key and its expiry. Nothing is stored: a token
stays valid across a restart, and becomes invalid when the owner's key changes or its named key is revoked.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from enum import StrEnum
from typing import Final

from hermes.domain.values import dataclass

PREFIX: Final = "ht_"
MAX_TTL_S: Final = 3_600
DEFAULT_TTL_S: Final = 300
_MAX_CHARS: Final = 400


class TokenScope(StrEnum):
    EVENTS = "events"
    FILES = "files"


ROUTES: Final = {
    "/api/events": TokenScope.EVENTS,
    "/v1/runs/{id}/events": TokenScope.EVENTS,
    "/v1/files/{id}/content": TokenScope.FILES,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamToken:
    scope: TokenScope
    key: str  # name of an API key; empty: the owner
    expires_at: int

    def sign(self, secret: str) -> str:
        payload = _base64(json.dumps([self.scope, self.key, self.expires_at]).encode())
        return f"{PREFIX}{payload}.{_base64(_signature(secret, payload))}"


def read(text: str, secret: str, now: float) -> StreamToken | None:
    """Return a valid token; None if it is wrong or expired."""
    payload, _, signature = text.removeprefix(PREFIX).partition(".")
    if not text.startswith(PREFIX) or len(text) > _MAX_CHARS or not text.isascii():
        return None
    if not hmac.compare_digest(_base64(_signature(secret, payload)), signature):
        return None
    try:
        scope, key, expires_at = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (binascii.Error, ValueError):
        return None
    token = StreamToken(scope=TokenScope(scope), key=key, expires_at=expires_at)
    return token if now < token.expires_at else None


def _signature(secret: str, payload: str) -> bytes:
    return hmac.digest(b"hermes stream token\0" + secret.encode(), payload.encode(), hashlib.sha256)


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
