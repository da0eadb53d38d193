"""Search by meaning: embeds messages in the background, and queries when they come.

Messages are embedded in small batches, the newest first, with pauses: conversations have priority. A failure is
retried later and never raised; without vectors a search finds what full text finds.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from loguru import logger

from hermes.domain.errors import HermesError
from hermes.ports.search import Embedder, SearchFilter
from hermes.search.index import Hit, SearchIndex
from hermes.search.meaning.vector_table import VectorTable

BATCH: Final = 16
REST: Final = 4.0  # the pause after a batch is this many times its duration
QUOTE: Final = '"'


class MeaningSearch:
    """Runs on the event loop; blocking work runs in threads."""

    def __init__(
        self,
        index: SearchIndex,
        embedder: Embedder,
        *,
        least: float,
        follow_s: float = 30.0,
        retry_s: float = 60.0,
    ) -> None:
        """`least` is the similarity below which nothing is a hit."""
        self._table = VectorTable(index, embedder.name)
        self._embedder = embedder
        self._least = least
        self._follow_s = follow_s
        self._retry_s = retry_s
        self._wanted = asyncio.Event()
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._wanted.set()
        self._task = asyncio.create_task(self._follow(), name="embeddings")

    async def stop(self) -> None:
        """Stop after the current batch. The next start embeds the rest."""
        self._stopping.set()
        self._wanted.set()
        if self._task:
            await self._task
        await asyncio.to_thread(self._embedder.release)

    def nudge(self) -> None:
        """Note that the index has new messages."""
        self._wanted.set()

    async def search(self, query: str, *, limit: int, only: SearchFilter) -> list[Hit]:
        """Return the closest messages; none for a query with a "phrase", which is meant literally."""
        if QUOTE in query or not query.strip():
            return []
        try:
            [vector] = await asyncio.to_thread(self._embedder.embed, [query])
            return await asyncio.to_thread(
                self._table.nearest, query, vector, limit=limit, least=self._least, only=only
            )
        except HermesError as error:
            logger.warning("search: found by words only: {}", error)
            return []

    async def count(self) -> tuple[int, int]:
        """Return the number of embedded messages, and of all."""
        return await asyncio.to_thread(self._table.count)

    # ------------------------------------------------------------ the loop

    async def _follow(self) -> None:
        while not self._stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), self._follow_s)
            self._wanted.clear()
            try:
                await self._embed_all()
            except HermesError as error:
                logger.warning("search: could not embed messages, trying again later: {}", error)
                await self._pause(self._retry_s)
            except Exception:  # noqa: BLE001 - outermost loop: the derived index must not stop the daemon
                logger.exception("search: could not embed messages")
                await self._pause(self._retry_s)

    async def _embed_all(self) -> None:
        loop = asyncio.get_running_loop()
        done = 0
        while not self._stopping.is_set():
            began = loop.time()
            rows = await asyncio.to_thread(self._table.unembedded, BATCH)
            if not rows:
                break
            vectors = await asyncio.to_thread(self._embedder.embed, [text for _, text in rows])
            together = [(number, text, vector) for (number, text), vector in zip(rows, vectors, strict=True)]
            await asyncio.to_thread(self._table.add, together)
            done += len(rows)
            await self._pause(REST * (loop.time() - began))
        if done:
            logger.info("search: {} messages embedded", done)
        await asyncio.to_thread(self._embedder.release)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
