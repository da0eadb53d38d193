"""Search service: a full-text index that is opened on first use and follows the journal, and search by meaning."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loguru import logger

from hermes.domain.errors import HermesError
from hermes.domain.ids import SessionId
from hermes.ports.search import NO_FILTER, Embedder, Findings, IndexProgress, Search, SearchFilter
from hermes.ports.storage import Engine

if TYPE_CHECKING:
    from hermes.search.follower import IndexFollower
    from hermes.search.index import SearchIndex
    from hermes.search.meaning.meaning_search import MeaningSearch

WAIT_S: Final = 5.0  # a search waits this long for the index, then answers from its current state
_MIN_RECORDS_FOR_EARLY_START: Final = 10_000  # records; fewer are indexed within the first search


class SearchService(Search):
    def __init__(
        self,
        directory: Path,
        *,
        engine: Engine,
        wait_s: float = WAIT_S,
        embedder: Callable[[], Embedder] | None = None,
        least_similarity: float = 0.3,
    ) -> None:
        """`embedder` makes the embedder; None: searches are by words only."""
        self._directory = directory
        self._engine = engine
        self._wait_s = wait_s
        self._make_embedder = embedder
        self._least_similarity = least_similarity
        self._meaning: MeaningSearch | None = None
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
        if self._meaning is not None:
            from hermes.search.meaning.fusion import fused  # noqa: PLC0415 - off by default

            self._meaning.nudge()
            close = await self._meaning.search(query, limit=limit, only=only)
            hits = fused(hits, close, limit=limit, distinct=only.session is None)
        return Findings(hits=hits, index=progress)

    def start(self) -> None:
        """Index a large journal in the background, so that the first search does not wait."""
        if self._make_embedder is not None or self._engine.last_position() >= _MIN_RECORDS_FOR_EARLY_START:
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
        if self._meaning is not None:
            await self._meaning.stop()
        if self._follower is not None:
            await self._follower.stop()

    def _opened(self) -> tuple[SearchIndex, IndexFollower]:
        if self._index is None or self._follower is None:
            from hermes.search.follower import IndexFollower  # noqa: PLC0415 - not needed before the first search
            from hermes.search.index import SearchIndex  # noqa: PLC0415

            self._index = SearchIndex(self._directory)
            self._follower = IndexFollower(self._index, read_after=self._engine.tail, lineage_root=self._root_of)
            self._follower.start()
            self._meaning = self._with_meaning(self._index)
        return self._index, self._follower

    def _with_meaning(self, index: SearchIndex) -> MeaningSearch | None:
        if self._make_embedder is None:
            return None
        from hermes.search.meaning.meaning_search import MeaningSearch  # noqa: PLC0415 - off by default

        try:
            meaning = MeaningSearch(index, self._make_embedder(), least=self._least_similarity)
        except HermesError as error:
            logger.error("search: found by words only: {}", error)
            return None
        meaning.start()
        return meaning

    async def embedded(self) -> tuple[int, int] | None:
        """Return the number of embedded messages, and of all; None: searches are by words only."""
        return None if self._meaning is None else await self._meaning.count()

    def _root_of(self, session: SessionId) -> SessionId:
        head = self._engine.head(session)
        return session if head is None or head.root is None else head.root
