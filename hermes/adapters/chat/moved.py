"""Chats that a platform has given another id: Telegram does so when a group becomes a supergroup.

Their conversations keep the name they began under, and so does whatever the settings say about them.
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
        self._former: dict[str, str] | None = None  # by the id of today, as it is on disk
        self._noting = asyncio.Lock()  # groups may move at the same time, and none may be forgotten for another

    async def former_id(self, chat: str) -> str:
        """What the chat was called at first; empty: it has never moved."""
        return (await self._read()).get(chat, "")

    async def note(self, old: str, new: str) -> None:
        async with self._noting:
            known = await self._read()
            former = known.get(old, old)
            if known.get(new) != former:
                changed = known | {new: former}
                await self._sessions.remember(self._fact, json.dumps(changed).encode())
                self._former = changed
                logger.info("{}: chat {} is called {} now", self._platform, old, new)

    async def _read(self) -> dict[str, str]:
        if self._former is None:
            stored = await self._sessions.fact(self._fact)
            if self._former is None:  # nobody was faster, who may have noted more since
                self._former = json.loads(stored or b"{}")
        return self._former

    @property
    def _fact(self) -> str:
        return f"chat.moved:{self._platform}"
