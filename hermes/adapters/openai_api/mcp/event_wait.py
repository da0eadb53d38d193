"""Wait for stored events after a position."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Any

from hermes.adapters.http.caller import CALLER
from hermes.adapters.http.service import Service
from hermes.adapters.openai_api.events.journal_event import JournalEvents, ids_of
from hermes.domain.errors import UnknownSessionError
from hermes.domain.ids import SessionId
from hermes.domain.read.views import JournalEntry

_PAGE = 200
_LOOK_S = 1.0  # some records have no live event


class EventWait:
    """Reads the journal from a position. Others' sessions are left out for a named key."""

    def __init__(self, service: Service, session: SessionId | None) -> None:
        self._service = service
        self._session = session
        self._names = JournalEvents(service.sessions)

    async def wait(self, after: int | None, *, limit: int, timeout_s: float) -> dict[str, Any]:
        """Return the events, and the position to continue from. Without a position, wait for the next event."""
        sessions = self._service.sessions
        end = sessions.journal_end()
        position = end if after is None else min(after, end)
        found: list[dict[str, Any]] = []
        with closing(self._service.hub.subscribe(session=self._session)) as feed:
            deadline = asyncio.get_running_loop().time() + timeout_s
            while True:
                while position < sessions.journal_end() and len(found) < limit:
                    page = await sessions.journal(position, _PAGE)
                    for entry in page.entries:
                        position = entry.position
                        found += await self._shown(entry)
                        if len(found) >= limit:
                            break
                    else:
                        position = page.position
                left_s = deadline - asyncio.get_running_loop().time()
                if found or left_s <= 0:
                    return {"events": found, "position": position, "more": position < sessions.journal_end()}
                try:
                    async with asyncio.timeout(min(left_s, _LOOK_S)):
                        if await anext(feed, None) is None:
                            await asyncio.sleep(_LOOK_S)  # it lagged: the journal is read again
                except TimeoutError:
                    continue

    async def _shown(self, entry: JournalEntry) -> list[dict[str, Any]]:
        if self._session not in (None, entry.session) or not await self._is_open(entry.session):
            return []
        named = await self._names.of_entry(entry)
        if named is None:
            return []
        name, fields = named
        return [{"type": name, "position": entry.position, "at": entry.record.at, **ids_of(entry), **fields}]

    async def _is_open(self, session: SessionId) -> bool:
        key = CALLER.get(None)
        if key is None:
            return True
        try:
            return (await self._service.sessions.conversation(session)).platform == key.platform
        except UnknownSessionError:
            return False
