"""Named API keys of this daemon: created, listed, revoked, and looked up for each request."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from datetime import UTC, datetime

from loguru import logger

from hermes.config.log import redact
from hermes.config.secret import Secret
from hermes.domain.access import api_key
from hermes.domain.access.api_key import ApiKey, Keys, KeyState
from hermes.domain.access.role import Role
from hermes.domain.turn.usage import Usage
from hermes.ports.given import Clock
from hermes.ports.sessions import Sessions

FACT = "api.keys"
_PREFIX = "hk_"
_DAY_S = 86_400
_LOOK_S = 60.0  # the clock of the machine can jump


class KeyService:
    def __init__(self, sessions: Sessions, clock: Clock) -> None:
        self._sessions = sessions
        self._clock = clock
        self._keys: Keys | None = None  # as stored: this service is the only writer
        self._writing = asyncio.Lock()
        self._changed = asyncio.Event()  # a new one after each change

    async def keys(self) -> Keys:
        if self._keys is None:
            self._keys = api_key.decode(await self._sessions.fact(FACT))
        return self._keys

    async def find(self, given: str) -> ApiKey | None:
        return api_key.find(await self.keys(), given)

    def state(self, key: ApiKey) -> KeyState:
        return key.state(self._clock())

    async def ended(self, key: ApiKey) -> KeyState:
        """Wait until a key is not valid any more. Returns whether it was revoked or expired."""
        while True:
            changed = self._changed
            current = next((each for each in await self.keys() if each.name == key.name), key)
            if (state := self.state(current)) is not KeyState.ACTIVE:
                return state
            left_s = _LOOK_S if current.expires_at is None else current.expires_at - self._clock()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left_s, _LOOK_S)):
                    await changed.wait()

    async def create(
        self, name: str, *, role: Role, expires_s: float | None, day_tokens: int, day_usd: float
    ) -> tuple[ApiKey, Secret]:
        """Create a key. Returns it with its secret text, which is not stored and cannot be shown again."""
        text, now = Secret(_PREFIX + secrets.token_urlsafe(32)), self._clock()
        key = ApiKey(
            name=name,
            role=role,
            hash=api_key.hash_of(text.reveal()),
            created_at=now,
            expires_at=None if expires_s is None else now + expires_s,
            day_tokens=day_tokens,
            day_usd=day_usd,
        )
        async with self._writing:
            await self._write(api_key.add(await self.keys(), key))
        redact(text)
        logger.info("api key {}: created, role {}", name, role)
        return key, text

    async def revoke(self, name: str) -> None:
        async with self._writing:
            await self._write(api_key.revoke(await self.keys(), name, self._clock()))
        logger.info("api key {}: revoked", name)

    async def used_today(self, key: ApiKey) -> Usage:
        today = datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%d")
        tallies = await self._sessions.used(today)
        return sum((each.usage for each in tallies if each.platform == key.platform), Usage())

    def rest_of_today_s(self) -> float:
        """Return the time until 00:00 UTC, when daily budgets start again."""
        return _DAY_S - self._clock() % _DAY_S

    async def _write(self, keys: Keys) -> None:
        await self._sessions.remember(FACT, api_key.encode(keys))
        self._keys = keys
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
