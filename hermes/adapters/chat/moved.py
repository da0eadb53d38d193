"""Chats with a new id: Telegram changes it when a group becomes a supergroup.

Their session keys and settings keep the first id.
"""

from __future__ import annotations

import asyncio
import json

from loguru import logger

from hermes.ports.sessions import Sessions


class MovedChats:
    def __init__(self, platform: str, sessions: Sessions) -> None:
        self._platform = platform
        self._sessions = sessions
        self._former: dict[str, str] | None = None  # first id by current id, as stored
        self._noting = asyncio.Lock()  # several groups may move at the same time

    async def former_id(self, chat: str) -> str:
        """Return the first id of a chat that has moved, else an empty string."""
        return (await self._read()).get(chat, "")

    async def note(self, old: str, new: str) -> None:
        async with self._noting:
            known = await self._read()
            former = known.get(old, old)
            if known.get(new) != former:
                changed = known | {new: former}
                await self._sessions.remember(self._fact, json.dumps(changed).encode())
                self._former = changed
                logger.info("{}: chat {} has the new id {}", self._platform, old, new)

    async def _read(self) -> dict[str, str]:
        if self._former is None:
            stored = await self._sessions.fact(self._fact)
            if self._former is None:  # not loaded by another task meanwhile
                self._former = json.loads(stored or b"{}")
        return self._former

    @property
    def _fact(self) -> str:
        return f"chat.moved:{self._platform}"
