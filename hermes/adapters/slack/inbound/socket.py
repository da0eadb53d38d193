"""Socket Mode client: an envelope is acknowledged after its event is on disk.

Slack redelivers unacknowledged envelopes, on this connection or the next. When Slack announces a close, the next
connection is opened first, and the old one is read to its end. A connection without traffic, even without answers to
pings, is closed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import aiohttp
from loguru import logger
from slack_sdk.web.async_client import AsyncWebClient

from hermes.adapters.slack.failure import FAILURES, platform_error
from hermes.adapters.slack.inbound.backfill import Backfill
from hermes.adapters.slack.inbound.intake import SlackIntake
from hermes.adapters.slack.workspace import SlackClient
from hermes.domain.errors import PlatformError
from hermes.ports.chat import ChatIntake

PING_S = 15.0
_MAX_AT_ONCE = 1000  # envelopes in progress; reading pauses beyond that
_SHORT_LIVED_S = 5.0
_MAX_FRAME = 16 << 20
_CLOSE_S = 1.0
_FATAL = {
    "link_disabled": (
        "Socket Mode is switched off for this Slack app; switch it on in the app's settings (Socket Mode), or set "
        "slack.transport to http"
    ),
    "too_many_websockets": (
        "too many connections are open for this Slack app; stop the other programs that use the same SLACK_APP_TOKEN"
    ),
}
_Link: TypeAlias = aiohttp.ClientWebSocketResponse


class Socket:
    """Connections of one Slack app."""

    def __init__(
        self,
        intake: SlackIntake,
        backfill: Backfill,
        *,
        ping_s: float = PING_S,
        opened: Callable[[], None] = lambda: None,
    ) -> None:
        self._intake = intake
        self._backfill = backfill
        self._ping_s = ping_s
        self._opened = opened
        self._room = asyncio.Semaphore(_MAX_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, client: SlackClient, app: AsyncWebClient, chat_intake: ChatIntake) -> None:
        """Receive until cancelled. Raises PlatformError; can be called again."""
        loop = asyncio.get_running_loop()
        await client.workspaces()  # fail early with a bad token
        try:
            while True:
                link = await self._open(client, app, chat_intake)
                opened = loop.time()
                self._backfill.opened()
                self._opened()
                replaced: asyncio.Future[bool] = loop.create_future()
                self._spawn(self._read(link, client, chat_intake, replaced))
                announced = await replaced
                if not announced:
                    self._backfill.closed()
                if not announced and loop.time() - opened < _SHORT_LIVED_S:
                    raise PlatformError("Slack closed the connection right after it was opened")
        finally:
            self._backfill.closed()  # first: events in progress are left for redelivery
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _open(self, client: SlackClient, app: AsyncWebClient, chat_intake: ChatIntake) -> _Link:
        """Open a connection and wait for Slack's hello."""
        try:
            address = (await app.apps_connections_open(app_token=app.token or ""))["url"]
            link = await client.session.ws_connect(
                address,
                autoping=False,
                proxy=app.proxy,
                max_msg_size=_MAX_FRAME,
                timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_S),
            )
        except FAILURES as error:
            raise platform_error(error) from error
        frame = await self._next_frame(link, chat_intake)
        if frame is None or frame.get("type") != "hello":
            await link.close()
            reason = str((frame or {}).get("reason") or "closed")
            raise PlatformError(_FATAL.get(reason, f"Slack sent no hello on a new connection: {reason}"))
        return link

    async def _read(
        self, link: _Link, client: SlackClient, chat_intake: ChatIntake, replaced: asyncio.Future[bool]
    ) -> None:
        try:
            while (frame := await self._next_frame(link, chat_intake)) is not None:
                if frame.get("type") == "disconnect":
                    self._on_disconnect(str(frame.get("reason") or ""), replaced)
                elif "envelope_id" in frame:
                    await self._room.acquire()
                    self._spawn(self._handle(frame, link, client, chat_intake))
        finally:
            await link.close()
            if not replaced.done():
                replaced.set_result(False)

    def _on_disconnect(self, reason: str, replaced: asyncio.Future[bool]) -> None:
        logger.info("slack: connection will be closed by Slack ({})", reason)
        if replaced.done():
            return
        if reason in _FATAL:
            replaced.set_exception(PlatformError(_FATAL[reason]))
        else:
            replaced.set_result(True)

    async def _next_frame(self, link: _Link, chat_intake: ChatIntake) -> Mapping[str, Any] | None:
        """Return the next text frame; None at the end of the connection."""
        pinged = False
        while True:
            try:
                frame = await link.receive(self._ping_s)
            except TimeoutError:
                if pinged:
                    logger.warning("slack: no traffic for {:g} s; closing the connection", 2 * self._ping_s)
                    return None
                pinged = True
                with suppress(ConnectionError):
                    await link.ping()
                continue
            pinged = False
            match frame.type:
                case aiohttp.WSMsgType.TEXT:
                    chat_intake.alive()
                    if (found := _decoded(frame.data)) is not None:
                        return found
                case aiohttp.WSMsgType.PING:
                    chat_intake.alive()
                    with suppress(ConnectionError):
                        await link.pong(frame.data)
                case aiohttp.WSMsgType.PONG:
                    chat_intake.alive()
                case aiohttp.WSMsgType.BINARY:
                    pass
                case _:
                    return None

    async def _handle(
        self, frame: Mapping[str, Any], link: _Link, client: SlackClient, chat_intake: ChatIntake
    ) -> None:
        try:
            await self._intake.take(str(frame["type"]), frame.get("payload") or {}, client, chat_intake)
            # If the connection is closed by now, Slack redelivers the envelope, and its id is known.
            with suppress(ConnectionError):
                await link.send_json({"envelope_id": frame["envelope_id"]})
        except PlatformError as error:
            logger.warning(
                "slack: envelope {} not acknowledged, Slack will redeliver it: {}", frame["envelope_id"], error
            )
        # Outermost handler of a task: an unexpected error of one envelope is logged and must not affect the others.
        except Exception as error:  # noqa: BLE001
            logger.opt(exception=error).error("slack: envelope {} failed", frame["envelope_id"])
        finally:
            self._room.release()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="slack socket")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _decoded(data: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(data)
    except ValueError:
        logger.warning("slack: received a frame that is not JSON")
        return None
    return found if isinstance(found, dict) else None
