"""Backfill: reads messages from Slack's history that were sent while no connection was open.

Slack redelivers events for about six minutes only. After each gap the backfill reads the history, in parallel with
new events, and passes messages to the same intake: the same rules apply, and known ids are skipped. The read position
of each workspace is saved about once a minute and does not advance before the gap is filled. A workspace without a
read position is not backfilled.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from loguru import logger

from hermes.adapters.chat.intake_retry import RETRYABLE
from hermes.adapters.slack.address import NAME, team_and_channel
from hermes.adapters.slack.inbound.history import History
from hermes.adapters.slack.inbound.intake import SlackIntake
from hermes.adapters.slack.inbound.read_position import ReadPosition
from hermes.adapters.slack.rate_limiter import Allowance
from hermes.adapters.slack.workspace import SlackClient, Workspace
from hermes.config.secret import Secret
from hermes.domain.errors import PlatformError
from hermes.ports.chat import ChatIntake

NOTE_EVERY_S = 60.0
MARGIN_S = 420.0  # Slack redelivers for six minutes; its clock may differ from ours
LONGEST_S = 86_400.0
_RETRY_AFTER_S = 300.0  # pause after a failed backfill
_MAX_CHANNELS = 200
_MAX_PLACES = 200  # of recent conversations
_MAX_THREADS = 50  # threads among them


class Backfill:
    """Backfill of one connection, for one app or all of them."""

    def __init__(
        self,
        intake: SlackIntake,
        positions: ReadPosition,
        *,
        allowance: Allowance,
        clock: Callable[[], float],
        warned: set[str],
        app: Secret | None = None,
        every_s: float = NOTE_EVERY_S,
    ) -> None:
        self._intake = intake
        self._positions = positions
        self._allowance = allowance
        self._clock = clock
        self._warned = warned  # warnings that were logged once
        self._app = app  # only workspaces of this app; None: all
        self._every_s = every_s
        self._open = False
        self._gaps = 0
        self._woken = asyncio.Event()
        self._current: set[str] = set()  # teams without a gap
        self._retry_at: dict[str, float] = {}  # time of the next attempt, by team

    def opened(self) -> None:
        """Note that events arrive from now on."""
        self._open = True
        self._retry_at.clear()
        self._woken.set()

    def closed(self) -> None:
        """Note that events may be missed from now on."""
        self._advance()
        self._open = False
        self._gaps += 1
        self._current.clear()

    async def run(self, client: SlackClient, chat_intake: ChatIntake) -> None:
        """Fill gaps and save read positions until cancelled."""
        try:
            while True:
                self._woken.clear()
                if self._open:
                    await self._fill_gaps(client, chat_intake)
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._every_s):
                        await self._woken.wait()
        finally:
            self._advance()

    async def _fill_gaps(self, client: SlackClient, chat_intake: ChatIntake) -> None:
        try:
            for workspace in (await client.workspaces()).values():
                if self._is_served(workspace):
                    await self._fill_gap(workspace, client, chat_intake)
            self._advance()
            await self._positions.save(chat_intake)
        except (PlatformError, *RETRYABLE) as error:
            logger.info("slack: could not save read position: {}", error)

    async def _fill_gap(self, workspace: Workspace, client: SlackClient, chat_intake: ChatIntake) -> None:
        team, gaps, now = workspace.identity.team, self._gaps, self._clock()
        if team in self._current or self._retry_at.get(team, 0.0) > now:
            return
        since = await self._positions.of(team, chat_intake)
        if since is not None:
            self._retry_at[team] = now + _RETRY_AFTER_S
            try:
                await self._take_missed(workspace, _start_of_backfill(since, now), client, chat_intake)
            except (PlatformError, *RETRYABLE) as error:
                logger.warning("slack: backfill of {} failed, retrying later: {}", team, error)
                return
        if gaps == self._gaps:  # else there was another gap meanwhile
            self._current.add(team)

    async def _take_missed(
        self, workspace: Workspace, oldest: float, client: SlackClient, chat_intake: ChatIntake
    ) -> None:
        team = workspace.identity.team
        history = History(workspace, self._allowance, lambda lacks: self._warn(team, lacks))
        known = await _conversations(team, chat_intake)
        channels = list(dict.fromkeys((*known, *await history.channels())))
        if len(channels) > _MAX_CHANNELS:
            logger.warning(
                "slack: backfill: of {} channels in {} only {} are read", len(channels), team, _MAX_CHANNELS
            )
        for channel in channels[:_MAX_CHANNELS]:
            for message in await history.since(channel, oldest, known.get(channel, ())):
                await self._intake.take("events_api", _event(team, channel, message), client, chat_intake)
        logger.debug("slack: backfill of {} finished", team)

    def _is_served(self, workspace: Workspace) -> bool:
        app = workspace.app
        return self._app is None or (app is not None and app.reveal() == self._app.reveal())

    def _warn(self, team: str, lacks: str) -> None:
        if (warning := f"{team}: {lacks}") not in self._warned:
            self._warned.add(warning)
            logger.warning("slack: backfill is incomplete in {}", warning)

    def _advance(self) -> None:
        if self._open:
            now, waits_since = self._clock(), self._intake.waits_since
            for team in self._current:
                self._positions.advance(team, now if waits_since is None else min(now, waits_since))


def _start_of_backfill(since: float, now: float) -> float:
    """Return the start of the backfill. The clock may have been set back meanwhile."""
    return max(min(since, now) - MARGIN_S, now - LONGEST_S)


async def _conversations(team: str, chat_intake: ChatIntake) -> Mapping[str, list[str]]:
    """Return the channels of recent conversations, newest first, with their threads."""
    found: dict[str, list[str]] = defaultdict(list)
    left = _MAX_THREADS
    for place in await chat_intake.places(NAME, _MAX_PLACES):
        its_team, channel = team_and_channel(place.chat)
        if its_team != team:
            continue
        threads = found[channel]
        if place.thread and left and place.thread not in threads:
            threads.append(place.thread)
            left -= 1
    return dict(found)


def _event(team: str, channel: str, message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Build an event as Slack would have sent it."""
    return {"team_id": team, "event": {**message, "type": "message", "channel": channel}}
