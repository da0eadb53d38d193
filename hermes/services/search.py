"""Search service: a full-text index that is opened on first use and follows the journal."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes.domain.ids import SessionId
from hermes.ports.search import NO_FILTER, Findings, IndexProgress, Search, SearchFilter
from hermes.ports.storage import Engine

if TYPE_CHECKING:
    from hermes.search.follower import IndexFollower
    from hermes.search.index import SearchIndex

WAIT_S: Final = 5.0  # a search waits this long for the index, then answers from its current state
_MIN_RECORDS_FOR_EARLY_START: Final = 10_000  # records; fewer are indexed within the first search


class SearchService(Search):
    def __init__(self, directory: Path, *, engine: Engine, wait_s: float = WAIT_S) -> None:
        self._directory = directory
        self._engine = engine
        self._wait_s = wait_s
        self._index: SearchIndex | None = None
        self._follower: IndexFollower | None = None

    async def search(self, query: str, *, limit: int, only: SearchFilter = NO_FILTER) -> Findings:
        """Search everything written before this call. While the index is being built, search its current state."""
        index, follower = self._opened()
        progress = None
        try:
            async with asyncio.timeout(self._wait_s):
                await follower.caught_up()
        except TimeoutError:
            progress = self.progress()
        hits = await asyncio.to_thread(index.search, query, limit=limit, only=only)
        return Findings(hits=hits, index=progress)

    def start(self) -> None:
        """Index a large journal in the background, so that the first search does not wait."""
        if self._engine.last_position() >= _MIN_RECORDS_FOR_EARLY_START:
            self._opened()

    def progress(self) -> IndexProgress | None:
        """Return the position of the index; None before its first use."""
        if self._follower is None:
            return None
        return IndexProgress(
            indexed=self._follower.position,
            total=self._engine.last_position(),
            building=self._follower.building,
        )

    async def forget(self, session: SessionId) -> None:
        """Remove an erased session from the index."""
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
