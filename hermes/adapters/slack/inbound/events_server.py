"""Events API server: Slack posts signed events, and each is answered with 200 after it is on disk.

A refused event is answered with 503; Slack retries it immediately, after one minute and after five. The health signal
is an API call every minute, because requests may be rare.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web
from loguru import logger
from slack_sdk.signature import Clock, SignatureVerifier

from hermes.adapters.chat.intake_retry import RETRYABLE
from hermes.adapters.http.listener import Listener
from hermes.adapters.http.webhook_listener import read_body, webhook_listener
from hermes.adapters.slack.health import ASK_EVERY_S, ask_all
from hermes.adapters.slack.inbound.backfill import Backfill
from hermes.adapters.slack.inbound.intake import SlackIntake
from hermes.adapters.slack.workspace import SlackClient
from hermes.config.secret import Secret
from hermes.domain.errors import PlatformError
from hermes.ports.chat import ChatIntake

PATH = "/slack/events"
_GRACE_S = 1.0
_TAKE_TIMEOUT_S = 2.0  # Slack's timeout is three seconds


class EventsServer:
    def __init__(
        self, intake: SlackIntake, secrets: Sequence[Secret], *, host: str, port: int, clock: Callable[[], float]
    ) -> None:
        self._intake = intake
        self._secrets = secrets
        self._host = host
        self._port = port
        self._clock = clock
        self.address = ""  # address while it is listening

    async def run(self, client: SlackClient, chat_intake: ChatIntake, backfill: Backfill) -> None:
        """Serve until cancelled. Raises PlatformError; can be called again."""
        await client.workspaces()  # fail early with a bad token
        listener = self._listener(client, chat_intake)
        loop = asyncio.get_running_loop()
        try:
            server = await listener.open(lambda factory: loop.create_server(factory, self._host, self._port))
        except OSError as error:
            raise PlatformError(
                f"the Slack events server cannot listen on {self._host}:{self._port}: {error.strerror}"
            ) from error
        try:
            host, port = server.sockets[0].getsockname()[:2]
            self.address = f"http://{host}:{port}{PATH}"
            logger.info("slack: events server listening on {}", self.address)
            backfill.opened()
            while True:
                await _check_health(client, chat_intake)
                await asyncio.sleep(ASK_EVERY_S)
        finally:
            self.address = ""
            backfill.closed()
            await listener.stop(_GRACE_S)

    def _listener(self, client: SlackClient, chat_intake: ChatIntake) -> Listener:
        async def answer(request: web.Request) -> web.Response:
            return await self._answer(request, client, chat_intake)

        return webhook_listener(PATH, answer)

    async def _answer(self, request: web.Request, client: SlackClient, chat_intake: ChatIntake) -> web.Response:
        body = await read_body(request)
        if not is_signed(
            body,
            signed_at=request.headers.get("X-Slack-Request-Timestamp", ""),
            signature=request.headers.get("X-Slack-Signature", ""),
            secrets=self._secrets,
            now=self._clock(),
        ):
            logger.warning("slack: request refused: wrong signature or too old")
            return web.Response(status=401)
        chat_intake.alive()
        found = _read(request.content_type, body)
        if found is None:
            return web.Response(status=400)
        kind, payload = found
        if payload.get("type") == "url_verification":
            return web.json_response({"challenge": payload.get("challenge")})
        if retry := request.headers.get("X-Slack-Retry-Num"):
            reason = request.headers.get("X-Slack-Retry-Reason", "")
            logger.info("slack: event {} redelivered, retry {} ({})", payload.get("event_id"), retry[:4], reason[:40])
        try:
            await self._intake.take(kind, payload, client, chat_intake, timeout_s=_TAKE_TIMEOUT_S)
        except (PlatformError, *RETRYABLE) as error:
            logger.info("slack: event {} not stored, Slack will retry: {}", payload.get("event_id"), error)
            return web.Response(status=503)
        return web.Response()


def _read(content_type: str, body: bytes) -> tuple[str, dict[str, Any]] | None:
    """Return the kind, as Socket Mode names it, and the payload."""
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


async def _check_health(client: SlackClient, chat_intake: ChatIntake) -> None:
    workspaces = (await client.workspaces()).values()
    problems = await ask_all(workspaces, chat_intake)
    if len(problems) == len(workspaces):
        raise problems[0]
    chat_intake.alive()


class _FixedClock(Clock):
    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        return self._now


def is_signed(body: bytes, *, signed_at: str, signature: str, secrets: Iterable[Secret], now: float) -> bool:
    """Return whether one of the secrets signed the request within five minutes of `now`.

    The comparison takes constant time, and every secret is tried.
    """
    clock = _FixedClock(now)
    try:
        return any(
            [SignatureVerifier(each.reveal(), clock).is_valid(body, signed_at, signature) for each in secrets]  # noqa: C419
        )
    except (TypeError, ValueError):  # a timestamp that is not a number, a signature or a body that is not text
        return False
