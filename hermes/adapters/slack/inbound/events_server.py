"""The Events API: Slack's events as signed HTTP requests to a port of our own. 200 is said only after it is on disk.

What is not for now is answered with 503, and Slack sends it again, at once, after a minute and after five. Without
requests nothing proves that Slack is there: a small question to it does, every minute.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web
from loguru import logger

from hermes.adapters.http.listener import Listener
from hermes.adapters.http.webhook_listener import read_body, webhook_listener
from hermes.adapters.slack.health import ASK_EVERY_S, ask_all
from hermes.adapters.slack.inbound.backfill import Backfill
from hermes.adapters.slack.inbound.intake import NOT_NOW, SlackIntake
from hermes.adapters.slack.inbound.signature import is_signed
from hermes.adapters.slack.workspace import SlackClient
from hermes.config.secret import Secret
from hermes.domain.errors import PlatformError
from hermes.ports.chat import ChatEdge

PATH = "/slack/events"
_GRACE_S = 1.0
_PATIENCE_S = 2.0  # Slack waits for three seconds


class EventsServer:
    def __init__(
        self, intake: SlackIntake, secrets: Sequence[Secret], *, host: str, port: int, clock: Callable[[], float]
    ) -> None:
        self._intake = intake
        self._secrets = secrets
        self._host = host
        self._port = port
        self._clock = clock
        self.address = ""  # where it listens, while it does

    async def run(self, wire: SlackClient, edge: ChatEdge, backfill: Backfill) -> None:
        """Until cancelled. Raises PlatformError, and can be run again."""
        await wire.workspaces()  # with a bad token nothing could be answered
        listener = self._listener(wire, edge)
        loop = asyncio.get_running_loop()
        try:
            server = await listener.open(lambda factory: loop.create_server(factory, self._host, self._port))
        except OSError as error:
            raise PlatformError(
                f"Slack's events cannot be listened for on {self._host}:{self._port}: {error.strerror}"
            ) from error
        try:
            host, port = server.sockets[0].getsockname()[:2]
            self.address = f"http://{host}:{port}{PATH}"
            logger.info("slack: events are expected at {}", self.address)
            backfill.opened()
            while True:
                await _prove_health(wire, edge)
                await asyncio.sleep(ASK_EVERY_S)
        finally:
            self.address = ""
            backfill.closed()
            await listener.stop(_GRACE_S)

    def _listener(self, wire: SlackClient, edge: ChatEdge) -> Listener:
        async def answer(request: web.Request) -> web.Response:
            return await self._answer(request, wire, edge)

        return webhook_listener(PATH, answer)

    async def _answer(self, request: web.Request, wire: SlackClient, edge: ChatEdge) -> web.Response:
        body = await read_body(request)
        if not is_signed(
            body,
            signed_at=request.headers.get("X-Slack-Request-Timestamp", ""),
            signature=request.headers.get("X-Slack-Signature", ""),
            secrets=self._secrets,
            now=self._clock(),
        ):
            logger.warning("slack: a request is refused: it is not signed with our secret, or too old")
            return web.Response(status=401)
        edge.alive()
        found = _read(request.content_type, body)
        if found is None:
            return web.Response(status=400)
        kind, payload = found
        if payload.get("type") == "url_verification":
            return web.json_response({"challenge": payload.get("challenge")})
        if retry := request.headers.get("X-Slack-Retry-Num"):
            reason = request.headers.get("X-Slack-Retry-Reason", "")
            logger.info(
                "slack: {} comes for the {}. time again ({})", payload.get("event_id"), retry[:4], reason[:40]
            )
        try:
            await self._intake.take(kind, payload, wire, edge, patience_s=_PATIENCE_S)
        except (PlatformError, *NOT_NOW) as error:
            logger.info("slack: {} is not taken now; Slack sends it again: {}", payload.get("event_id"), error)
            return web.Response(status=503)
        return web.Response()


def _read(content_type: str, body: bytes) -> tuple[str, dict[str, Any]] | None:
    """What it is, in the words of Socket Mode, and what it says."""
    try:
        if content_type != "application/x-www-form-urlencoded":
            payload = json.loads(body)
            return ("events_api", payload) if isinstance(payload, dict) else None
        form = dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True))
        if "payload" not in form:
            return "slash_commands", dict(form)
        payload = json.loads(form["payload"])
    except ValueError:
        return None
    return ("interactive", payload) if isinstance(payload, dict) else None


async def _prove_health(wire: SlackClient, edge: ChatEdge) -> None:
    workspaces = (await wire.workspaces()).values()
    problems = await ask_all(workspaces, edge)
    if len(problems) == len(workspaces):
        raise problems[0]
    edge.alive()
