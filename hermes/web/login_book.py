"""Logins of the dashboard: one-time codes, sessions of browsers, and form tokens. In memory, hashed, bounded."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import Final

from hermes.ports.given import Clock

CODE_S: Final = 300.0
IDLE_S: Final = 12 * 3600.0
LONGEST_S: Final = 7 * 86_400.0
MAX_CODES: Final = 20
MAX_LOGINS: Final = 200


@dataclass(slots=True, kw_only=True, eq=False)
class Login:
    """A browser that is logged in."""

    is_operator: bool  # by a link from the terminal; else by the API key, which may less
    began_at: float
    seen_at: float
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def who(self) -> str:
        return "dashboard" if self.is_operator else "dashboard-key"


class LoginBook:
    """Event loop only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._codes: dict[bytes, float] = {}  # hash of a code, and when it expires
        self._logins: dict[bytes, Login] = {}  # hash of a cookie

    def create_code(self) -> str:
        """Return a code for one login within a few minutes."""
        self._drop_expired()
        while len(self._codes) >= MAX_CODES:
            del self._codes[next(iter(self._codes))]
        code = secrets.token_urlsafe(32)
        self._codes[_hash(code)] = self._clock() + CODE_S
        return code

    def is_code(self, code: str) -> bool:
        """Return whether a code can still be used. It stays valid."""
        self._drop_expired()
        return _hash(code) in self._codes

    def use_code(self, code: str) -> bool:
        """Use up a code. False: it is wrong, used or expired."""
        self._drop_expired()
        return self._codes.pop(_hash(code), None) is not None

    def open(self, *, is_operator: bool) -> str:
        """Return the cookie of a new login."""
        self._drop_expired()
        while len(self._logins) >= MAX_LOGINS:
            self._end(min(self._logins, key=lambda each: self._logins[each].seen_at))
        cookie, now = secrets.token_urlsafe(32), self._clock()
        self._logins[_hash(cookie)] = Login(is_operator=is_operator, began_at=now, seen_at=now)
        return cookie

    def find(self, cookie: str) -> Login | None:
        self._drop_expired()
        login = self._logins.get(_hash(cookie))
        if login is not None:
            login.seen_at = self._clock()
        return login

    def close(self, cookie: str) -> None:
        """End a login. Its streams end."""
        if _hash(cookie) in self._logins:
            self._end(_hash(cookie))

    def form_token(self, cookie: str) -> str:
        """Return the token that forms of this cookie's pages carry."""
        return hmac.digest(self._secret, cookie.encode("utf-8", "surrogateescape"), hashlib.sha256).hex()

    def is_form_token(self, cookie: str, given: str) -> bool:
        return hmac.compare_digest(self.form_token(cookie).encode(), given.encode("utf-8", "surrogateescape"))

    def _drop_expired(self) -> None:
        now = self._clock()
        self._codes = {name: expires for name, expires in self._codes.items() if now < expires}
        over = [
            name
            for name, login in self._logins.items()
            if now - login.seen_at >= IDLE_S or now - login.began_at >= LONGEST_S
        ]
        for name in over:
            self._end(name)

    def _end(self, name: bytes) -> None:
        self._logins.pop(name).ended.set()


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
