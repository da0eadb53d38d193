"""Keeps the search index up to date with the journal.

Rules:
- The index stores its position; the follower stores nothing. A rebuilt index is filled from the start of the journal.
- Reading a batch of the journal and indexing it is one step under a lock. So a session that is removed after it was
  erased from the journal stays removed.
- The journal has priority: while no search waits, the follower pauses after each batch. It waits briefly for more
  records before it starts. A failure is retried later and never raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TypeAlias

from loguru import logger

from hermes.domain.errors import HermesError, StoppingError, StorageError, UnknownSessionError
from hermes.domain.ids import Seq, SessionId
from hermes.domain.records import BadRecord, Record
from hermes.search.index import Indexed, SearchIndex
from hermes.search.indexed_text import texts_of

Written: TypeAlias = tuple[int, SessionId, Seq, Record | BadRecord]  # the position in the journal first
ReadAfter: TypeAlias = Callable[[int, int], Sequence[Written]]  # blocking: (position, maximum number of records)
LineageRoot: TypeAlias = Callable[[SessionId], SessionId]  # blocking; UnknownSessionError: erased meanwhile

BATCH = 500
REST = 4.0  # the pause after a batch is this many times its duration, while no search waits


class IndexFollower:
    """Follower of the journal. Runs on the event loop; blocking work runs in threads."""

    def __init__(
        self,
        index: SearchIndex,
        *,
        read_after: ReadAfter,
        lineage_root: LineageRoot,
        debounce_s: float = 0.5,
        retry_s: float = 10.0,
        follow_s: float = 60.0,  # interval without a search or a nudge
    ) -> None:
        self._index = index
        self._read_after = read_after
        self._lineage_root = lineage_root
        self._debounce_s = debounce_s
        self._retry_s = retry_s
        self._follow_s = follow_s
        self._work = asyncio.Lock()
        self._wanted = asyncio.Event()  # there may be new records
        self._hurry = asyncio.Event()  # a search waits
        self._waiting: list[asyncio.Future[None]] = []
        self._served: list[asyncio.Future[None]] = []  # searches that wait for the current round
        self.position = 0  # last known position in the journal
        self.building = False  # there are more records to index
        self._stopping = False
        self._trusted = False  # index and journal were compared
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._wanted.set()
        self._task = asyncio.create_task(self._follow(), name="search index follower")

    async def stop(self) -> None:
        """Stop after the current batch. The next start indexes the rest."""
        self._stopping = True
        self._wanted.set()
        self._hurry.set()
        if self._task:
            await self._task
        self._release(StoppingError("the search index has stopped"))
        await asyncio.to_thread(self._index.close)

    def nudge(self) -> None:
        """Note that the journal has new records."""
        self._wanted.set()

    async def caught_up(self) -> None:
        """Wait until everything written before this call is indexed. Raises StoppingError."""
        if self._stopping:
            raise StoppingError("the search index has stopped")
        done = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self._wanted.set()
        self._hurry.set()
        await done

    async def forget(self, session: SessionId) -> None:
        """Remove a session that was erased from the journal before this call."""
        async with self._work:
            await asyncio.to_thread(self._index.forget, session)
        self.nudge()

    # ------------------------------------------------------------ the loop

    async def _follow(self) -> None:
        while not self._stopping:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), self._follow_s)
            await self._pause(self._debounce_s)
            self._wanted.clear()
            self._hurry.clear()
            self._served, self._waiting = self._waiting, []
            if await self._caught_up():
                _resolve(self._served, None)
                continue
            self._waiting = self._served + self._waiting
            if not self._stopping:
                self._wanted.set()
                await self._pause(self._retry_s)

    async def _caught_up(self) -> bool:
        try:
            return await self._catch_up()
        except HermesError as error:
            logger.warning("search index: could not update: {}", error)
        except Exception:  # noqa: BLE001 - outermost loop: the derived index must not stop the daemon
            logger.exception("search index: could not update")
        return False

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), seconds)

    async def _catch_up(self) -> bool:
        """Index new records. Return whether the end of the journal was reached."""
        loop = asyncio.get_running_loop()
        while not self._stopping:
            began = loop.time()
            async with self._work:
                more = await asyncio.to_thread(self._index_batch)
            self.building = more
            if more:
                await self._rest(REST * (loop.time() - began))
            else:
                async with self._work:
                    await asyncio.to_thread(self._index.tidy)
                return True
        return False

    async def _rest(self, seconds: float) -> None:
        if all(future.done() for future in (*self._served, *self._waiting)):  # a search may have given up waiting
            self._hurry.clear()
            if not self._stopping:
                await self._pause(seconds)

    def _index_batch(self) -> bool:
        """Index the next batch of the journal. Return whether there may be more. Blocking."""
        position = self._index.position()
        if not self._trusted and position and not self._read_after(position - 1, 1):
            # The index is ahead of the journal: a backup was restored, or the last records were erased.
            self._index.clear()
            position = self._index.position()
        self._trusted = True
        self.position = position
        written = self._read_after(position, BATCH)
        if not written:
            return False
        self._index.add(written[-1][0], list(self._entries(written)))
        self.position = self._index.position()
        if self.position <= position:
            raise StorageError("the search index was damaged and is being rebuilt")
        return True

    def _entries(self, written: Sequence[Written]) -> Iterator[Indexed]:
        roots: dict[SessionId, SessionId | None] = {}
        for _, session, seq, record in written:
            for message in texts_of(record):
                if session not in roots:
                    roots[session] = self._root(session)
                if root := roots[session]:
                    yield Indexed(
                        session=session,
                        root=root,
                        seq=seq,
                        at=message.at,
                        role=message.role,
                        text=message.text,
                        platform=message.platform,
                        person=message.person,
                    )

    def _root(self, session: SessionId) -> SessionId | None:
        try:
            return self._lineage_root(session)
        except UnknownSessionError:
            return None

    def _release(self, error: HermesError | None) -> None:
        waiting, self._waiting = self._waiting, []
        _resolve(waiting, error)


def _resolve(waiting: Sequence[asyncio.Future[None]], error: HermesError | None) -> None:
    for future in waiting:
        if future.done():  # the search was cancelled
            continue
        if error:
            future.set_exception(error)
        else:
            future.set_result(None)
