"""Named API keys with role, expiry and daily budget.

A key is shown once, when it is created; only its hash is stored. A name is never given out twice, not even after it
was revoked: conversations belong to the name.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from dataclasses import asdict
from enum import StrEnum
from typing import Any, Final

from hermes.domain.access.role import Role
from hermes.domain.errors import BadInputError
from hermes.domain.session.state import Session
from hermes.domain.turn.usage import Usage
from hermes.domain.values import dataclass, replace

PLATFORM_PREFIX: Final = "key-"  # of the platform that conversations of a named key are on
KEY_ROLES: Final = (Role.USER, Role.GUEST)
MAX_KEYS: Final = 1000
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")


class KeyState(StrEnum):
    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    name: str
    role: Role
    hash: str  # SHA-256 of the key, in hex: a random key of 256 bits needs no slow hash
    created_at: float
    expires_at: float | None = None
    day_tokens: int = 0  # that it may use in a day (UTC); 0: no limit
    day_usd: float = 0.0
    revoked_at: float | None = None

    @property
    def platform(self) -> str:
        return PLATFORM_PREFIX + self.name

    def state(self, now: float) -> KeyState:
        if self.revoked_at is not None:
            return KeyState.REVOKED
        return KeyState.EXPIRED if self.expires_at is not None and now >= self.expires_at else KeyState.ACTIVE

    def owns(self, session: Session) -> bool:
        return session.platform == self.platform

    def has_spent(self, used: Usage) -> bool:
        """Return whether its daily budget is used up."""
        tokens = used.prompt_tokens + used.completion_tokens
        return bool(0 < self.day_tokens <= tokens or 0 < self.day_usd <= used.cost_usd)


Keys = tuple[ApiKey, ...]


def hash_of(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def find(keys: Keys, given: str) -> ApiKey | None:
    """Return the key with that text, in any state. All keys are compared, so that the time reveals nothing."""
    hashed, found = hash_of(given), None
    for key in keys:
        if hmac.compare_digest(key.hash, hashed):
            found = key
    return found


def add(keys: Keys, new: ApiKey) -> Keys:
    """Add a key. Raises BadInputError."""
    if not _NAME.fullmatch(new.name):
        message = "A key's name has 1 to 32 lower-case letters, digits and hyphens, and does not begin with a hyphen."
        raise BadInputError(message, param="name", code="invalid_value")
    if new.role not in KEY_ROLES:
        raise BadInputError("A named key is a user or a guest.", param="role", code="invalid_value")
    if any(key.name == new.name for key in keys):
        message = f"The name {new.name} is taken. Names of revoked keys are not given out again; choose another."
        raise BadInputError(message, param="name", code="key_exists")
    if len(keys) >= MAX_KEYS:
        raise BadInputError(f"There are {MAX_KEYS} keys, and no more can be stored.", code="too_many_keys")
    return (*keys, new)


def revoke(keys: Keys, name: str, now: float) -> Keys:
    """Revoke a key. Raises BadInputError if it does not exist or is revoked already."""
    if not any(key.name == name and key.revoked_at is None for key in keys):
        raise BadInputError(f"There is no key {name[:40]!r} that could be revoked.", param="name", code="unknown_key")
    return tuple(replace(key, revoked_at=now) if key.name == name else key for key in keys)


def encode(keys: Keys) -> bytes:
    return json.dumps([asdict(key) for key in keys]).encode()


def decode(raw: bytes | None) -> Keys:
    listed: list[dict[str, Any]] = [] if raw is None else json.loads(raw)
    return tuple(ApiKey(**{**fields, "role": Role(fields["role"])}) for fields in listed)


def is_named_key(platform: str) -> bool:
    """Return whether conversations on this platform belong to a named key."""
    return platform.startswith(PLATFORM_PREFIX)


def may_write(platform: str, session: Session) -> bool:
    """Return whether a message from this platform may enter the session. The owner's key writes none for others."""
    if not is_named_key(platform) and platform != "api":
        return True
    return platform == session.platform or not (is_named_key(platform) or is_named_key(session.platform))


def surface_of(platform: str) -> str:
    """Return the surface of a platform. All named keys use the API."""
    return "api" if platform.startswith(PLATFORM_PREFIX) else platform
