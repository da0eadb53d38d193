"""Keeps the search index up to date with the journal.

Rules:
- The index says how far it is; nothing is remembered here. An index that was made anew is filled from the beginning.
- Reading some of the journal and taking it in is one piece of work that nothing of ours comes between. So a session
  that is forgotten after it was erased from the journal stays forgotten.
- The journal comes first: while no search waits, most of the time is left to others. Work waits a moment for more
  of it, and a failure is tried again later, never passed on.
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
from hermes.search.said import texts_of

Written: TypeAlias = tuple[int, SessionId, Seq, Record | BadRecord]  # the place in the whole journal first
ReadAfter: TypeAlias = Callable[[int, int], Sequence[Written]]  # blocking: up to so many records beyond that place
LineageRoot: TypeAlias = Callable[[SessionId], SessionId]  # blocking; UnknownSessionError: erased meanwhile

BATCH = 500
REST = 4.0  # times what a batch took is the pause after it, while no search waits


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
        follow_s: float = 60.0,  # without a search or a nudge, look so often
    ) -> None:
        self._index = index
        self._read_after = read_after
        self._lineage_root = lineage_root
        self._debounce_s = debounce_s
        self._retry_s = retry_s
        self._follow_s = follow_s
        self._work = asyncio.Lock()
        self._wanted = asyncio.Event()  # there may be something new
        self._hurry = asyncio.Event()  # somebody waits for it
        self._waiting: list[asyncio.Future[None]] = []
        self._served: list[asyncio.Future[None]] = []  # those whom the present round is for
        self.position = 0  # in the journal, as far as is known
        self.building = False  # there is more to take in
        self._stopping = False
        self._trusted = False  # whether index and journal were compared
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._wanted.set()
        self._task = asyncio.create_task(self._follow(), name="search index follower")

    async def stop(self) -> None:
        """Stop after the current piece of work. The next start indexes the rest."""
        self._stopping = True
        self._wanted.set()
        self._hurry.set()
        if self._task:
            await self._task
        self._release(StoppingError("the search index is no longer kept up to date"))
        await asyncio.to_thread(self._index.close)

    def nudge(self) -> None:
        """Note that the journal has new records."""
        self._wanted.set()

    async def caught_up(self) -> None:
        """Wait until everything written before this call is indexed. Raises StoppingError."""
        if self._stopping:
            raise StoppingError("the search index is no longer kept up to date")
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
                _tell(self._served, None)
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
        except Exception:  # noqa: BLE001 - outermost: what is derived must not take the daemon down, nor end unnoticed
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
                more = await asyncio.to_thread(self._take_in)
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

    def _take_in(self) -> bool:
        """Index the next part of the journal. Return whether there may be more. Blocking."""
        position = self._index.position()
        if not self._trusted and position and not self._read_after(position - 1, 1):
            # It knows more than the journal: that is an older copy, put back, or what was last in it was erased.
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
            for said in texts_of(record):
                if session not in roots:
                    roots[session] = self._root(session)
                if root := roots[session]:
                    yield Indexed(
                        session=session,
                        root=root,
                        seq=seq,
                        at=said.at,
                        role=said.role,
                        text=said.text,
                        platform=said.platform,
                    )

    def _root(self, session: SessionId) -> SessionId | None:
        try:
            return self._lineage_root(session)
        except UnknownSessionError:
            return None

    def _release(self, error: HermesError | None) -> None:
        waiting, self._waiting = self._waiting, []
        _tell(waiting, error)


def _tell(waiting: Sequence[asyncio.Future[None]], error: HermesError | None) -> None:
    for future in waiting:
        if future.done():  # whoever waited has left
            continue
        if error:
            future.set_exception(error)
        else:
            future.set_result(None)
