"""What people wrote while nobody listened: Slack tries for some six minutes to bring it, and then forgets to.

So it is looked for after each gap, beside the listening, and handed over as if Slack had brought it: what is not for
us is left out by the same rules, and what was taken before is known by its id. Up to when a workspace was heard is
noted about once a minute; it does not move on before what was missed is taken. Whoever is heard for the first time
is not looked back at.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from loguru import logger

from hermes.adapters.slack.address import NAME, team_and_channel
from hermes.adapters.slack.inbound.history import History
from hermes.adapters.slack.inbound.intake import NOT_NOW, SlackIntake
from hermes.adapters.slack.inbound.read_position import ReadPosition
from hermes.adapters.slack.rate_limiter import Allowance
from hermes.adapters.slack.workspace import SlackClient, Workspace
from hermes.config.secret import Secret
from hermes.domain.errors import PlatformError
from hermes.ports.chat import ChatEdge

NOTE_EVERY_S = 60.0
MARGIN_S = 420.0  # Slack's own tries take six minutes; and its clock may differ from ours
LONGEST_S = 86_400.0
_AGAIN_S = 300.0  # after a look that failed
_MAX_CHANNELS = 200
_MAX_PLACES = 200  # of conversations lately
_MAX_THREADS = 50  # of those


class Backfill:
    """Of one connection, over which one app or all of them are heard."""

    def __init__(
        self,
        intake: SlackIntake,
        heard: ReadPosition,
        *,
        pace: Allowance,
        clock: Callable[[], float],
        said: set[str],
        app: Secret | None = None,
        every_s: float = NOTE_EVERY_S,
    ) -> None:
        self._intake = intake
        self._heard = heard
        self._pace = pace
        self._clock = clock
        self._said = said  # warnings that need not be repeated
        self._app = app  # whose workspaces these are; None: all
        self._every_s = every_s
        self._open = False
        self._gaps = 0
        self._stirred = asyncio.Event()
        self._current: set[str] = set()  # teams of which nothing is missing
        self._again_at: dict[str, float] = {}  # when to look again, by team

    def opened(self) -> None:
        """From now on everything is heard."""
        self._open = True
        self._again_at.clear()
        self._stirred.set()

    def closed(self) -> None:
        """From now on something may be missed."""
        self._advance()
        self._open = False
        self._gaps += 1
        self._current.clear()

    async def run(self, wire: SlackClient, edge: ChatEdge) -> None:
        """Until cancelled."""
        try:
            while True:
                self._stirred.clear()
                if self._open:
                    await self._look_around(wire, edge)
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._every_s):
                        await self._stirred.wait()
        finally:
            self._advance()

    async def _look_around(self, wire: SlackClient, edge: ChatEdge) -> None:
        try:
            for workspace in (await wire.workspaces()).values():
                if self._is_heard(workspace):
                    await self._look_at(workspace, wire, edge)
            self._advance()
            await self._heard.save(edge)
        except (PlatformError, *NOT_NOW) as error:
            logger.info("slack: up to when we have heard everything is not noted now: {}", error)

    async def _look_at(self, workspace: Workspace, wire: SlackClient, edge: ChatEdge) -> None:
        team, gaps, now = workspace.me.team, self._gaps, self._clock()
        if team in self._current or self._again_at.get(team, 0.0) > now:
            return
        since = await self._heard.of(team, edge)
        if since is not None:
            self._again_at[team] = now + _AGAIN_S
            try:
                await self._take_missed(workspace, _first_moment(since, now), wire, edge)
            except (PlatformError, *NOT_NOW) as error:
                logger.warning("slack: what was missed in {} is looked for again later: {}", team, error)
                return
        if gaps == self._gaps:  # else there was another one meanwhile
            self._current.add(team)

    async def _take_missed(self, workspace: Workspace, oldest: float, wire: SlackClient, edge: ChatEdge) -> None:
        team = workspace.me.team
        history = History(workspace, self._pace, lambda lacks: self._warn(team, lacks))
        known = await _conversations(team, edge)
        channels = list(dict.fromkeys((*known, *await history.channels())))
        if len(channels) > _MAX_CHANNELS:
            logger.warning("slack: of {} channels in {} only {} are looked at", len(channels), team, _MAX_CHANNELS)
        for channel in channels[:_MAX_CHANNELS]:
            for message in await history.since(channel, oldest, known.get(channel, ())):
                await self._intake.take("events_api", _event(team, channel, message), wire, edge)
        logger.debug("slack: nothing is missing any more in {}", team)

    def _is_heard(self, workspace: Workspace) -> bool:
        app = workspace.app
        return self._app is None or (app is not None and app.reveal() == self._app.reveal())

    def _warn(self, team: str, lacks: str) -> None:
        if (warning := f"{team}: {lacks}") not in self._said:
            self._said.add(warning)
            logger.warning("slack: what was written while Hermes was away is not all found in {}", warning)

    def _advance(self) -> None:
        if self._open:
            now, waits_since = self._clock(), self._intake.waits_since
            for team in self._current:
                self._heard.advance(team, now if waits_since is None else min(now, waits_since))


def _first_moment(since: float, now: float) -> float:
    """From which on to look. The clock may have been set back meanwhile."""
    return max(min(since, now) - MARGIN_S, now - LONGEST_S)


async def _conversations(team: str, edge: ChatEdge) -> Mapping[str, list[str]]:
    """Channels where something went on lately, the latest first, with the threads that are conversations."""
    found: dict[str, list[str]] = defaultdict(list)
    left = _MAX_THREADS
    for place in await edge.places(NAME, _MAX_PLACES):
        its_team, channel = team_and_channel(place.chat)
        if its_team != team:
            continue
        threads = found[channel]
        if place.thread and left and place.thread not in threads:
            threads.append(place.thread)
            left -= 1
    return dict(found)


def _event(team: str, channel: str, message: Mapping[str, Any]) -> Mapping[str, Any]:
    """As Slack would have brought it."""
    return {"team_id": team, "event": {**message, "type": "message", "channel": channel}}
