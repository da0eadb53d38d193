"""The connection to Slack, both ways: Socket Mode or the Events API that take in, and the platform that says.

One app may be installed in several workspaces, and there may be several apps. One that fails among several is tried
again by itself, and takes none of the others down.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing

from loguru import logger

from hermes import wall_clock
from hermes.adapters.slack.download import download
from hermes.adapters.slack.event import Manners
from hermes.adapters.slack.events_server import EventsServer
from hermes.adapters.slack.intake import Intake
from hermes.adapters.slack.pace import Limits
from hermes.adapters.slack.platform import SlackPlatform
from hermes.adapters.slack.progress import Progress
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
        self._intake = Intake(manners or Manners())
        self._progress = Progress(reactions=reactions)
        self._platform = SlackPlatform(self._connected, limits=limits or Limits(), progress=self._progress)
        self.events: EventsServer | None = None
        if listen is not None:
            secrets = [each.signing for each in credentials if each.signing is not None]
            self.events = EventsServer(self._intake, secrets, host=listen[0], port=listen[1], clock=clock)
        self._wire: Wire | None = None

    @property
    def platform(self) -> Platform:
        return self._platform

    async def run(self, edge: ChatEdge) -> None:
        if self.events is not None:
            return await self.events.run(self._connected(), edge)
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
        if self._wire is not None:
            await self._wire.close()

    async def _listen(self, app: Secret, edge: ChatEdge) -> None:
        wire = self._connected()
        await Socket(self._intake, ping_s=self._ping_s).run(wire, wire.client(app), edge)

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


def _distinct(secrets: Iterable[Secret]) -> list[Secret]:
    return list({each.reveal(): each for each in secrets}.values())
