"""Search as the rest of the daemon sees it: an index that is made on the first use and follows the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.ports.storage import Engine
from hermes.types import SessionId

if TYPE_CHECKING:
    from hermes.search.follower import IndexFollower
    from hermes.search.index import Hit, SearchIndex


class SearchDesk:
    def __init__(self, directory: Path, *, engine: Engine) -> None:
        self._directory = directory
        self._engine = engine
        self._index: SearchIndex | None = None
        self._follower: IndexFollower | None = None

    async def search(
        self,
        query: str,
        *,
        limit: int,
        session: SessionId | None = None,
        role: str | None = None,
        since: float | None = None,
    ) -> Sequence[Hit]:
        """Of everything that was written before."""
        index, follower = self._opened()
        await follower.caught_up()
        return await asyncio.to_thread(index.search, query, limit=limit, session=session, role=role, since=since)

    async def forget(self, session: SessionId) -> None:
        """Of a session that was erased."""
        if self._follower is not None or await asyncio.to_thread(self._directory.exists):
            await self._opened()[1].forget(session)

    async def stop(self) -> None:
        if self._follower is not None:
            await self._follower.stop()

    def _opened(self) -> tuple[SearchIndex, IndexFollower]:
        if self._index is None or self._follower is None:
            from hermes.search.follower import IndexFollower  # noqa: PLC0415 - not needed before the first search
            from hermes.search.index import SearchIndex  # noqa: PLC0415

            self._index = SearchIndex(self._directory)
            self._follower = IndexFollower(self._index, read_after=self._engine.tail, lineage_root=self._root_of)
            self._follower.start()
        return self._index, self._follower

    def _root_of(self, session: SessionId) -> SessionId:
        head = self._engine.head(session)
        return session if head is None or head.root is None else head.root
