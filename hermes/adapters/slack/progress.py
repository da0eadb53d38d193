"""Signs that somebody is at work: eyes on a message that is being answered, a check mark when it was, and the status
line of an assistant's thread.

Decoration: nothing waits for it, and what fails is left out. Slack allows few reactions a minute, so a workspace
that has had enough of them gets none for a while.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

from loguru import logger

from hermes.adapters.slack.place import is_direct, team_and_channel
from hermes.adapters.slack.trouble import FAILURES, code_of, explain, wait_of
from hermes.adapters.slack.workspace import Workspace
from hermes.types import Place

_WORKING = "eyes"
_DONE = "white_check_mark"
_STATUS = "is thinking…"
_HARMLESS = {"already_reacted", "no_reaction", "message_not_found"}
_MOST_REMEMBERED = 4096


class Progress:
    def __init__(self, *, reactions: bool) -> None:
        self._reactions = reactions
        self._tasks: set[asyncio.Task[None]] = set()
        self._working: dict[tuple[str, str], None] = {}  # messages that carry the eyes
        self._no_status: set[tuple[str, str]] = set()  # threads that are no assistant's
        self._quiet_until: dict[str, float] = {}  # by team

    def working(self, workspace: Workspace, place: Place) -> None:
        _, channel = team_and_channel(place.chat)
        if self._reactions and place.message and (place.chat, place.message) not in self._working:
            _remember(self._working, (place.chat, place.message))
            self._spawn(workspace, self._begin(workspace, channel, place.message))
        if is_direct(channel) and place.thread and (place.chat, place.thread) not in self._no_status:
            self._spawn(workspace, self._status(workspace, channel, place))

    def done(self, workspace: Workspace, place: Place) -> None:
        if self._reactions and place.message:
            _, channel = team_and_channel(place.chat)
            self._working.pop((place.chat, place.message), None)
            self._spawn(workspace, self._finish(workspace, channel, place.message))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _begin(self, workspace: Workspace, channel: str, message: str) -> None:
        await workspace.client.reactions_add(channel=channel, timestamp=message, name=_WORKING)

    async def _finish(self, workspace: Workspace, channel: str, message: str) -> None:
        await self._try(workspace, workspace.client.reactions_add(channel=channel, timestamp=message, name=_DONE))
        await workspace.client.reactions_remove(channel=channel, timestamp=message, name=_WORKING)

    async def _status(self, workspace: Workspace, channel: str, place: Place) -> None:
        try:
            await workspace.client.assistant_threads_setStatus(
                channel_id=channel, thread_ts=place.thread, status=_STATUS
            )
        except FAILURES as error:
            if code_of(error) and wait_of(error) is None:
                if len(self._no_status) >= _MOST_REMEMBERED:
                    self._no_status.clear()
                self._no_status.add((place.chat, place.thread))
            raise

    def _spawn(self, workspace: Workspace, work: Coroutine[Any, Any, Any]) -> None:
        if self._quiet_until.get(workspace.me.team, 0.0) > time.monotonic():
            work.close()
            return
        task = asyncio.create_task(self._try(workspace, work), name="slack progress")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _try(self, workspace: Workspace, work: Coroutine[Any, Any, Any]) -> None:
        try:
            await work
        except FAILURES as error:
            if (wait_s := wait_of(error)) is not None:
                self._quiet_until[workspace.me.team] = time.monotonic() + wait_s
            if code_of(error) not in _HARMLESS:
                logger.debug("slack: a sign of progress was left out: {}", explain(error))


def _remember(known: dict[tuple[str, str], None], what: tuple[str, str]) -> None:
    if len(known) >= _MOST_REMEMBERED:
        del known[next(iter(known))]
    known[what] = None
