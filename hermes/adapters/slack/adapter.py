"""The connection to Slack, both ways: Socket Mode or the Events API that take in, and the platform that says.

One app may be installed in several workspaces, and there may be several apps. One that fails among several is tried
again by itself, and takes none of the others down.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager

from loguru import logger

from hermes import wall_clock
from hermes.adapters.slack.download import download
from hermes.adapters.slack.event import Manners
from hermes.adapters.slack.events_server import EventsServer
from hermes.adapters.slack.heard_until import HeardUntil
from hermes.adapters.slack.intake import NOT_NOW, Intake
from hermes.adapters.slack.look_back import LookBack
from hermes.adapters.slack.pace import Allowance, Limits
from hermes.adapters.slack.platform import SlackPlatform
from hermes.adapters.slack.progress import Progress
from hermes.adapters.slack.response import Responses
from hermes.adapters.slack.socket import PING_S, Socket
from hermes.adapters.slack.workspace import BASE_URL, Credentials, Wire
from hermes.errors import PlatformError
from hermes.ports.chat import Attachment, ChatEdge, Platform
from hermes.secret import Secret

_ANSWER_WITHIN_S = 20.0
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0


class SlackAdapter:
    def __init__(
        self,
        credentials: Sequence[Credentials],
        *,
        listen: tuple[str, int] | None = None,  # host and port for the Events API; None is Socket Mode
        base_url: str = "",
        manners: Manners | None = None,
        reactions: bool = True,
        limits: Limits | None = None,
        ping_s: float = PING_S,
        answer_within_s: float = _ANSWER_WITHIN_S,
        clock: Callable[[], float] = wall_clock.wall,
    ) -> None:
        self._credentials = credentials
        self._base_url = (base_url.rstrip("/") + "/") if base_url else BASE_URL
        self._answer_within_s = answer_within_s
        self._ping_s = ping_s
        responses = Responses()
        self._intake = Intake(manners or Manners(), responses=responses, clock=clock)
        self._heard = HeardUntil()
        self._progress = Progress(reactions=reactions)
        limits = limits or Limits()
        self._looks = Allowance(every_s=limits.look_every_s, at_once=limits.looks_at_once)
        self._said: set[str] = set()  # warnings about what cannot be looked for
        self._platform = SlackPlatform(self._connected, limits=limits, progress=self._progress, responses=responses)
        self.events: EventsServer | None = None
        if listen is not None:
            secrets = [each.signing for each in credentials if each.signing is not None]
            self.events = EventsServer(self._intake, secrets, host=listen[0], port=listen[1], clock=clock)
        self._clock = clock
        self._wire: Wire | None = None
        self._edge: ChatEdge | None = None

    @property
    def platform(self) -> Platform:
        return self._platform

    async def run(self, edge: ChatEdge) -> None:
        self._edge = edge
        if self.events is not None:
            look_back = self._look_back()
            async with self._looking(look_back, edge):
                return await self.events.run(self._connected(), edge, look_back)
        apps = _distinct(each.app for each in self._credentials if each.app is not None)
        if len(apps) == 1:
            return await self._listen(apps[0], edge)
        async with asyncio.TaskGroup() as group:
            for app in apps:
                group.create_task(self._keep_listening(app, edge))
        return None

    async def fetch(self, attachment: Attachment) -> AsyncGenerator[bytes, None]:
        """What is in a file that a person has sent. Raises PlatformError."""
        async with aclosing(download(self._connected(), attachment)) as pieces:
            async for piece in pieces:
                yield piece

    async def close(self) -> None:
        await self._progress.close()
        if self._edge is not None:
            try:
                await self._heard.save(self._edge)
            except NOT_NOW as error:
                logger.info("slack: up to when we have heard everything is not noted: {}", error)
        if self._wire is not None:
            await self._wire.close()

    async def _listen(self, app: Secret, edge: ChatEdge) -> None:
        wire, look_back = self._connected(), self._look_back(app)
        async with self._looking(look_back, edge):
            await Socket(self._intake, look_back, ping_s=self._ping_s).run(wire, wire.client(app), edge)

    def _look_back(self, app: Secret | None = None) -> LookBack:
        return LookBack(self._intake, self._heard, pace=self._looks, clock=self._clock, said=self._said, app=app)

    @asynccontextmanager
    async def _looking(self, look_back: LookBack, edge: ChatEdge) -> AsyncIterator[None]:
        """For what was missed, beside what goes on in it."""
        looking = asyncio.create_task(look_back.run(self._connected(), edge), name="slack look back")
        looking.add_done_callback(_complain)
        try:
            yield
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    async def _keep_listening(self, app: Secret, edge: ChatEdge) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            began = asyncio.get_running_loop().time()
            try:
                await self._listen(app, edge)
            except PlatformError as error:
                logger.warning("slack: one of several apps is down: {}; it is tried again", error)
            lasted_s = asyncio.get_running_loop().time() - began
            pause_s = _FIRST_PAUSE_S if lasted_s > _LONGEST_PAUSE_S else min(2 * pause_s, _LONGEST_PAUSE_S)
            await asyncio.sleep(pause_s)

    def _connected(self) -> Wire:
        if self._wire is None:
            self._wire = Wire(self._credentials, self._base_url, answer_within_s=self._answer_within_s)
        return self._wire


def _complain(looking: asyncio.Task[None]) -> None:
    """A mistake of ours there ends the looking, and must not go unheard; the next connection looks again."""
    if not looking.cancelled() and (error := looking.exception()) is not None:
        logger.opt(exception=error).error("slack: what was missed cannot be looked for")


def _distinct(secrets: Iterable[Secret]) -> list[Secret]:
    return list({each.reveal(): each for each in secrets}.values())
