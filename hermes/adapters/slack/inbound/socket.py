"""Socket Mode: Slack's events over a connection that we open. An envelope is acknowledged only after it is on disk.

What is not acknowledged comes again, on this connection or the next. When Slack announces that it will close one, the
next is opened first, and the old one is read until its end. A connection on which nothing comes, not even the answer
to a ping, is dead.
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
from hermes.ports.chat import ChatEdge

PING_S = 15.0
_MAX_AT_ONCE = 1000  # envelopes in our hands; with more, the connection is not read for a while
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
    """The connections of one Slack app."""

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

    async def run(self, wire: SlackClient, app: AsyncWebClient, edge: ChatEdge) -> None:
        """Until cancelled. Raises PlatformError, and can be run again."""
        loop = asyncio.get_running_loop()
        await wire.workspaces()  # with a bad token nothing could be answered
        try:
            while True:
                link = await self._open(wire, app, edge)
                opened = loop.time()
                self._backfill.opened()
                self._opened()
                replaced: asyncio.Future[bool] = loop.create_future()
                self._spawn(self._read(link, wire, edge, replaced))
                announced = await replaced
                if not announced:
                    self._backfill.closed()
                if not announced and loop.time() - opened < _SHORT_LIVED_S:
                    raise PlatformError("Slack closed the connection right after it was opened")
        finally:
            self._backfill.closed()  # first: what is in our hands goes back to Slack now
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _open(self, wire: SlackClient, app: AsyncWebClient, edge: ChatEdge) -> _Link:
        """A connection on which Slack has said hello."""
        try:
            address = (await app.apps_connections_open(app_token=app.token or ""))["url"]
            link = await wire.session.ws_connect(
                address,
                autoping=False,
                proxy=app.proxy,
                max_msg_size=_MAX_FRAME,
                timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_S),
            )
        except FAILURES as error:
            raise platform_error(error) from error
        frame = await self._next(link, edge)
        if frame is None or frame.get("type") != "hello":
            await link.close()
            reason = str((frame or {}).get("reason") or "it was closed")
            raise PlatformError(_FATAL.get(reason, f"Slack did not say hello on a new connection: {reason}"))
        return link

    async def _read(self, link: _Link, wire: SlackClient, edge: ChatEdge, replaced: asyncio.Future[bool]) -> None:
        try:
            while (frame := await self._next(link, edge)) is not None:
                if frame.get("type") == "disconnect":
                    self._leave(str(frame.get("reason") or ""), replaced)
                elif "envelope_id" in frame:
                    await self._room.acquire()
                    self._spawn(self._handle(frame, link, wire, edge))
        finally:
            await link.close()
            if not replaced.done():
                replaced.set_result(False)

    def _leave(self, reason: str, replaced: asyncio.Future[bool]) -> None:
        logger.info("slack: the connection is going to be closed ({})", reason)
        if replaced.done():
            return
        if reason in _FATAL:
            replaced.set_exception(PlatformError(_FATAL[reason]))
        else:
            replaced.set_result(True)

    async def _next(self, link: _Link, edge: ChatEdge) -> Mapping[str, Any] | None:
        """The next frame that says something; None: there are no more."""
        asked = False
        while True:
            try:
                frame = await link.receive(self._ping_s)
            except TimeoutError:
                if asked:
                    logger.warning("slack: nothing came for {:g} s; the connection is given up", 2 * self._ping_s)
                    return None
                asked = True
                with suppress(ConnectionError):
                    await link.ping()
                continue
            asked = False
            match frame.type:
                case aiohttp.WSMsgType.TEXT:
                    edge.alive()
                    if (found := _decoded(frame.data)) is not None:
                        return found
                case aiohttp.WSMsgType.PING:
                    edge.alive()
                    with suppress(ConnectionError):
                        await link.pong(frame.data)
                case aiohttp.WSMsgType.PONG:
                    edge.alive()
                case aiohttp.WSMsgType.BINARY:
                    pass
                case _:
                    return None

    async def _handle(self, frame: Mapping[str, Any], link: _Link, wire: SlackClient, edge: ChatEdge) -> None:
        try:
            await self._intake.take(str(frame["type"]), frame.get("payload") or {}, wire, edge)
            # On a connection that is closed by now nobody hears it: Slack sends it again, and its id is known.
            with suppress(ConnectionError):
                await link.send_json({"envelope_id": frame["envelope_id"]})
        except PlatformError as error:
            logger.warning("slack: {} is left for Slack to deliver again: {}", frame["envelope_id"], error)
        # The outermost edge of a task: a mistake with one envelope must not go unheard, nor end the others.
        except Exception as error:  # noqa: BLE001
            logger.opt(exception=error).error("slack: {} could not be handled", frame["envelope_id"])
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
        logger.warning("slack: a frame is no JSON")
        return None
    return found if isinstance(found, dict) else None
