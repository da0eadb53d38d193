"""Slack adapter: Socket Mode or the Events API for inbound events, and the platform for outbound messages.

An app may be installed in several workspaces, and there may be several apps. If one app fails, it is retried alone;
the others continue.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from loguru import logger

from hermes.adapters.chat.intake_retry import RETRYABLE
from hermes.adapters.slack.health import keep_asking
from hermes.adapters.slack.inbound.backfill import Backfill
from hermes.adapters.slack.inbound.download import download
from hermes.adapters.slack.inbound.event import SlackAddressing
from hermes.adapters.slack.inbound.events_server import EventsServer
from hermes.adapters.slack.inbound.intake import SlackIntake
from hermes.adapters.slack.inbound.read_position import ReadPosition
from hermes.adapters.slack.inbound.socket import PING_S, Socket
from hermes.adapters.slack.names import channel_name
from hermes.adapters.slack.outbound.progress import Progress
from hermes.adapters.slack.platform import SlackPlatform
from hermes.adapters.slack.rate_limiter import Allowance, SlackLimits
from hermes.adapters.slack.response import Responses
from hermes.adapters.slack.workspace import BASE_URL, Credentials, SlackClient
from hermes.config.secret import Secret
from hermes.domain.backoff import backoff_s
from hermes.domain.errors import PlatformError
from hermes.domain.source import Place
from hermes.ports.chat import Attachment, ChatAdapter, ChatIntake, ChatNames, FileSource, Platform
from hermes.system import clock as wall_clock

_ANSWER_WITHIN_S = 20.0
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0


class SlackAdapter(ChatAdapter, FileSource, ChatNames):
    def __init__(
        self,
        credentials: Sequence[Credentials],
        *,
        listen: tuple[str, int] | None = None,  # host and port of the Events API; None: Socket Mode
        base_url: str = "",
        addressing: SlackAddressing | None = None,
        reactions: bool = True,
        limits: SlackLimits | None = None,
        ping_s: float = PING_S,
        answer_within_s: float = _ANSWER_WITHIN_S,
        clock: Callable[[], float] = wall_clock.wall,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._credentials = credentials
        self._base_url = (base_url.rstrip("/") + "/") if base_url else BASE_URL
        self._answer_within_s = answer_within_s
        self._ping_s = ping_s
        responses = Responses()
        self._intake = SlackIntake(addressing or SlackAddressing(), responses=responses, clock=clock)
        self._positions = ReadPosition()
        self._progress = Progress(reactions=reactions)
        limits = limits or SlackLimits()
        self._backfill_allowance = Allowance(every_s=limits.look_every_s, at_once=limits.looks_at_once)
        self._warned: set[str] = set()  # warnings that were logged once
        self._platform = SlackPlatform(self._connected, limits=limits, progress=self._progress, responses=responses)
        self.events: EventsServer | None = None
        if listen is not None:
            secrets = [each.signing for each in credentials if each.signing is not None]
            self.events = EventsServer(self._intake, secrets, host=listen[0], port=listen[1], clock=clock)
        self._clock = clock
        self._jitter = jitter  # between 0 and 1
        self._client: SlackClient | None = None
        self._chat_intake: ChatIntake | None = None

    @property
    def platform(self) -> Platform:
        return self._platform

    async def run(self, chat_intake: ChatIntake) -> None:
        self._chat_intake = chat_intake
        if self.events is not None:
            backfill = self._backfill()
            async with _background(backfill.run(self._connected(), chat_intake)):
                return await self.events.run(self._connected(), chat_intake, backfill)
        apps = _distinct(each.app for each in self._credentials if each.app is not None)
        async with _background(keep_asking(self._connected(), chat_intake)):
            if len(apps) == 1:
                return await self._listen(apps[0], chat_intake)
            async with asyncio.TaskGroup() as group:
                for number, app in enumerate(apps, 1):
                    group.create_task(self._keep_listening(app, f"app {number} of {len(apps)}", chat_intake))
        return None

    async def fetch(self, attachment: Attachment) -> AsyncGenerator[bytes, None]:
        """Download a file that a person sent. Raises PlatformError."""
        async with aclosing(download(self._connected(), attachment)) as pieces:
            async for piece in pieces:
                yield piece

    async def chat_name(self, place: Place) -> str:
        try:
            return await channel_name(await self._connected().workspaces(), place)
        except PlatformError:
            return ""

    async def close(self) -> None:
        await self._progress.close()
        if self._chat_intake is not None:
            try:
                await self._positions.save(self._chat_intake)
            except RETRYABLE as error:
                logger.info("slack: could not save read position: {}", error)
        if self._client is not None:
            await self._client.close()

    async def _listen(
        self, app: Secret, chat_intake: ChatIntake, *, opened: Callable[[], None] = lambda: None
    ) -> None:
        client, backfill = self._connected(), self._backfill(app)
        socket = Socket(self._intake, backfill, ping_s=self._ping_s, opened=opened)
        async with _background(backfill.run(client, chat_intake)):
            await socket.run(client, client.client(app), chat_intake)

    def _backfill(self, app: Secret | None = None) -> Backfill:
        return Backfill(
            self._intake,
            self._positions,
            allowance=self._backfill_allowance,
            clock=self._clock,
            warned=self._warned,
            app=app,
        )

    async def _keep_listening(self, app: Secret, part: str, chat_intake: ChatIntake) -> None:
        failures = 0
        while True:
            began = asyncio.get_running_loop().time()
            wish_s = 0.0
            try:
                await self._listen(app, chat_intake, opened=lambda: chat_intake.trouble(part, ""))
            except PlatformError as error:
                wish_s = error.retry_after_s or 0.0
                chat_intake.trouble(part, str(error))
            lasted_s = asyncio.get_running_loop().time() - began
            failures = 1 if lasted_s > _LONGEST_PAUSE_S else failures + 1
            pause_s = backoff_s(failures, first_s=_FIRST_PAUSE_S, max_s=_LONGEST_PAUSE_S, jitter=self._jitter())
            await asyncio.sleep(max(wish_s, pause_s))

    def _connected(self) -> SlackClient:
        if self._client is None:
            self._client = SlackClient(
                self._credentials,
                self._base_url,
                answer_within_s=self._answer_within_s,
                trouble=self._report_trouble,
                jitter=self._jitter,
            )
        return self._client

    def _report_trouble(self, part: str, problem: str) -> None:
        if self._chat_intake is not None:
            self._chat_intake.trouble(part, problem)


@asynccontextmanager
async def _background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run a task for the duration of the context."""
    task = asyncio.create_task(work, name="slack background task")
    task.add_done_callback(_log_failure)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _log_failure(task: asyncio.Task[None]) -> None:
    """Log an unexpected error of a background task. The task starts again with the next connection."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.opt(exception=error).error("slack: {} failed", task.get_coro())


def _distinct(secrets: Iterable[Secret]) -> list[Secret]:
    return list({each.reveal(): each for each in secrets}.values())
