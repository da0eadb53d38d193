"""Under which inbound key a client's own Idempotency-Key is remembered.

One space for all doors, whatever the platform: a retry through another one is still the same turn.
"""

from __future__ import annotations

import hashlib

from hermes.domain.types import InboundKey


def inbound_of(key: str) -> InboundKey:
    return InboundKey(f"api:{hashlib.sha256(key.encode()).hexdigest()}")
