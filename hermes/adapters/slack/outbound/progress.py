"""Progress indicators: an eyes reaction on a message that waits or is being answered, a check mark or cross at its
end, and the status line of an assistant thread during the turn.

Optional: nothing waits for it, and failures are ignored. Slack allows about twenty removed reactions a minute per
workspace; beyond that, some messages get none. A reaction that was added is always removed.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from loguru import logger

from hermes.adapters.slack.address import is_direct, team_and_channel
from hermes.adapters.slack.failure import FAILURES, code_of, explain, wait_of
from hermes.adapters.slack.rate_limiter import Allowance
from hermes.adapters.slack.workspace import Workspace
from hermes.domain.outbox_message import TurnEnd
from hermes.domain.source import Place

_WORKING = "eyes"
_ENDED = {TurnEnd.ANSWERED: "white_check_mark", TurnEnd.FAILED: "x"}  # a stopped turn gets none
_STATUS = "is thinking…"
_HARMLESS = {"already_reacted", "no_reaction", "message_not_found"}
_MAX_REMEMBERED = 4096
_REACT_EVERY_S = 3.0
_REACTIONS_AT_ONCE = 20
_AT_ONCE = 4  # concurrent calls: keep the pool free for messages
_STATUS_EVERY_S = 60.0  # Slack shows a status for two minutes


class Progress:
    def __init__(self, *, reactions: bool) -> None:
        self._reactions = reactions
        self._tasks: set[asyncio.Task[None]] = set()
        self._turnstile = asyncio.Semaphore(_AT_ONCE)
        self._working: dict[tuple[str, str], float] = {}  # messages with the eyes reaction, and since when
        self._room = Allowance(every_s=_REACT_EVERY_S, at_once=_REACTIONS_AT_ONCE)
        self._status_at: dict[tuple[str, str], float] = {}  # when to set a thread's status again
        self._lines: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()  # one per thread
        self._quiet_until: dict[str, float] = {}  # by team

    def working(self, workspace: Workspace, place: Place) -> None:
        _, channel = team_and_channel(place.chat)
        now = time.monotonic()
        message = (place.chat, place.message)
        if place.message and message not in self._working and self._may_react(workspace, now):
            self._room.take(workspace.identity.team, now)
            _remember(self._working, message, now)
            self._spawn(workspace, partial(self._begin, workspace, channel, place.message))
        thread = (place.chat, place.thread)
        if is_direct(channel) and place.thread and self._status_at.get(thread, now) <= now:
            _remember(self._status_at, thread, now + _STATUS_EVERY_S)
            self._spawn(workspace, partial(self._set_status, workspace, place, _STATUS))

    def done(self, workspace: Workspace, place: Place, end: TurnEnd) -> None:
        now = time.monotonic()
        self._clear_status(workspace, place)
        began = self._working.pop((place.chat, place.message), None) is not None
        # The daemon of the last boot may have added the reaction.
        if place.message and (began or self._may_react(workspace, now)):
            if not began:
                self._room.take(workspace.identity.team, now)
            _, channel = team_and_channel(place.chat)
            self._spawn(workspace, partial(self._finish, workspace, channel, place.message, end))

    def _clear_status(self, workspace: Workspace, place: Place) -> None:
        """Clear the status. Slack does so for a new message, but not for an edit."""
        thread = (place.chat, place.thread)
        if self._status_at.get(thread, math.inf) < math.inf:
            del self._status_at[thread]
            self._spawn(workspace, partial(self._set_status, workspace, place, ""))

    def _may_react(self, workspace: Workspace, now: float) -> bool:
        return self._reactions and self._room.has_room(workspace.identity.team, now)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _begin(self, workspace: Workspace, channel: str, message: str) -> None:
        await workspace.client.reactions_add(channel=channel, timestamp=message, name=_WORKING)

    async def _finish(self, workspace: Workspace, channel: str, message: str, end: TurnEnd) -> None:
        if sign := _ENDED.get(end):
            await self._try(workspace, workspace.client.reactions_add(channel=channel, timestamp=message, name=sign))
        await workspace.client.reactions_remove(channel=channel, timestamp=message, name=_WORKING)

    async def _set_status(self, workspace: Workspace, place: Place, status: str) -> None:
        """Set a thread's status. Serialised per thread, so that the last one stays."""
        _, channel = team_and_channel(place.chat)
        thread = (place.chat, place.thread)
        async with self._lines.setdefault(thread, asyncio.Lock()):
            if self._status_at.get(thread) == math.inf:
                return
            try:
                await workspace.client.assistant_threads_setStatus(
                    channel_id=channel, thread_ts=place.thread, status=status
                )
            except FAILURES as error:
                if code_of(error) and wait_of(error) is None:  # not an assistant thread
                    _remember(self._status_at, thread, math.inf)
                raise

    def _spawn(self, workspace: Workspace, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        if self._quiet_until.get(workspace.identity.team, 0.0) > time.monotonic():
            return

        async def run() -> None:
            async with self._turnstile:
                await self._try(workspace, work())

        task = asyncio.create_task(run(), name="slack progress")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _try(self, workspace: Workspace, work: Coroutine[Any, Any, Any]) -> None:
        try:
            await work
        except FAILURES as error:
            if (wait_s := wait_of(error)) is not None:
                self._quiet_until[workspace.identity.team] = time.monotonic() + wait_s
            if code_of(error) not in _HARMLESS:
                logger.debug("slack: progress indicator failed: {}", explain(error))


def _remember(known: dict[tuple[str, str], float], what: tuple[str, str], at: float) -> None:
    if len(known) >= _MAX_REMEMBERED and what not in known:
        del known[next(iter(known))]
    known[what] = at
