"""Check of Slack's request signatures. Pure."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

from hermes.config.secret import Secret

_MAX_SKEW_S = 300.0


def is_signed(body: bytes, *, signed_at: str, signature: str, secrets: Iterable[Secret], now: float) -> bool:
    """Return True if one of the secrets signed the request recently. Compares in constant time."""
    if not signed_at.isascii() or not signed_at.isdecimal() or abs(now - int(signed_at[:20])) > _MAX_SKEW_S:
        return False
    given = signature.encode("utf-8", "replace")
    signed = f"v0:{signed_at}:".encode() + body
    matches = [
        hmac.compare_digest(b"v0=" + hmac.new(_key(each), signed, hashlib.sha256).hexdigest().encode(), given)
        for each in secrets
    ]
    return any(matches)


def _key(secret: Secret) -> bytes:
    return secret.reveal().encode()
