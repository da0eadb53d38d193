"""Retention service: deletes conversations that were not used for a long time, on request or by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from loguru import logger

from hermes.domain.child.child import PREFIX
from hermes.domain.errors import HermesError, SessionInUseError, UnknownSessionError
from hermes.domain.ids import SessionId
from hermes.domain.read.lineage import find_family, find_head
from hermes.domain.read.reader import Reader
from hermes.domain.retention import is_expired, is_expiring
from hermes.domain.session.state import Session, is_pending
from hermes.ports.given import Clock
from hermes.ports.storage import Journal

FIRST_AFTER_S: Final = 120.0  # not during the daemon's start
SWEEP_EVERY_S: Final = 86_400.0
_PAGE: Final = 200


class SessionRetention:
    def __init__(
        self,
        journal: Journal,
        *,
        erase: Callable[[SessionId, float], Awaitable[None]],
        has_processes: Callable[[SessionId], bool],
        clock: Clock,
    ) -> None:
        """`erase` erases a conversation that was not used since a time, or raises SessionInUseError.
        `has_processes` returns whether the conversation with this first session has running processes.
        """
        self._journal = journal
        self._erase = erase
        self._has_processes = has_processes
        self._clock = clock

    async def prune(self, keep_s: float, *, dry_run: bool = False) -> list[SessionId]:
        """Delete each conversation that was not used for that long. Return one session of each."""
        pruned: list[SessionId] = []
        since = self._clock() - keep_s
        for session in await self._expired(since):
            if not dry_run:
                try:
                    await self._erase(session, since)
                except (SessionInUseError, UnknownSessionError) as error:
                    logger.debug("retention: kept the conversation of session {}: {}", session, error)
                    continue
                logger.info("retention: deleted the conversation of session {}", session)
            pruned.append(session)
        return pruned

    async def run(self, keep_s: float) -> None:
        """Prune every day, until cancelled."""
        await asyncio.sleep(FIRST_AFTER_S)
        while True:
            try:
                await self.prune(keep_s)
            except HermesError as error:
                logger.warning("retention: could not delete old conversations: {}", error)
            await asyncio.sleep(SWEEP_EVERY_S)

    async def _expired(self, since: float) -> list[SessionId]:
        """Return one session of each conversation to delete. Reads the store page by page."""
        found: list[SessionId] = []
        covered: set[SessionId] = set()
        after: SessionId | None = None
        while page := await self._journal.fetch(partial(_page, after=after)):
            after = page[-1].id
            for head in page:
                if head.id in covered or not is_expired([head], since):
                    continue
                family = await self._journal.fetch(partial(_family, session=head.id))
                covered.update(each.id for each in family)
                awaited = await self._journal.fetch(partial(_is_awaited, session=head))
                if is_expired(family, since) and not awaited and not self._has_processes(head.root or head.id):
                    found.append(head.id)
        return found


def _page(reader: Reader, after: SessionId | None) -> list[Session]:
    return reader.recent(_PAGE, after)


def _family(reader: Reader, session: SessionId) -> list[Session]:
    heads = (find_head(reader, name) for name in find_family(reader, session))
    return [head for head in heads if head is not None]


def _is_awaited(reader: Reader, session: Session) -> bool:
    """Return whether somebody still has to read what a child session answered."""
    assignment = session.assignment
    if assignment is None or is_expiring(session):
        return False
    if reader.fact(PREFIX + assignment.key) is not None:
        return True
    parent = find_head(reader, assignment.parent) if assignment.parent is not None else None
    while parent is not None and parent.successor is not None:
        parent = find_head(reader, parent.successor)
    calls = parent.turn.calls if parent is not None and parent.turn is not None else ()
    waits = any(session.id in call.children for call in calls)  # perhaps suspended
    return waits or (parent is not None and is_pending(parent))
