"""Slack workspaces: one slack-sdk Web API client each, over a shared connection pool.

Retries of the library are off, because a call with a lost answer may have taken effect. Its Socket Mode client is not
used: it handles events out of order and acknowledges them on any connection.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from hermes.adapters.slack.failure import FAILURES, platform_error
from hermes.config.secret import Secret
from hermes.domain.errors import PlatformError
from hermes.domain.values import dataclass

BASE_URL = "https://slack.com/api/"
_CONNECT_S = 10.0
_CONNECTIONS = 64
_RETRY_LOGIN_S = 30.0  # pause after a failed login, while other workspaces work
_ALL_WITHIN_S = 1.0  # wait this long for all workspaces, then use those that are connected


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Credentials of one workspace. Several may share one app."""

    bot: Secret
    app: Secret | None = None  # for Socket Mode
    signing: Secret | None = None  # for the Events API


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackIdentity:
    """Bot identity in one workspace."""

    team: str
    user: str
    bot: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    identity: SlackIdentity
    client: AsyncWebClient
    app: Secret | None = None  # app that receives its events, in Socket Mode


class SlackClient:
    """Connected workspaces. Create it on the running event loop."""

    def __init__(
        self,
        credentials: Sequence[Credentials],
        base_url: str,
        *,
        answer_within_s: float,
        trouble: Callable[[str, str], None] = lambda _part, _problem: None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=answer_within_s, sock_connect=_CONNECT_S),
            connector=aiohttp.TCPConnector(limit=_CONNECTIONS),
        )
        self.base_url = base_url
        # For files: no total timeout as long as data arrives.
        self.patience = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=answer_within_s)
        self._bots = {each.bot.reveal(): each for each in credentials}
        self._trouble = trouble  # called with a failing workspace and its problem
        self._jitter = jitter  # between 0 and 1
        self._known: dict[str, Workspace] = {}  # by bot token, as in all dicts here
        self._failed_logins: dict[str, tuple[float, PlatformError]] = {}  # failed logins, and when to retry
        self._logins: dict[str, asyncio.Task[None]] = {}  # logins in progress

    async def workspaces(self) -> Mapping[str, Workspace]:
        """Return the connected workspaces by team. Raises PlatformError if there are none. A workspace that does not
        answer does not delay the others."""
        if len(self._known) < len(self._bots):
            await self._start_logins()
        if not self._known and self.missing is not None:
            raise self.missing
        known = [self._known[name] for name in self._bots if name in self._known]
        return {each.identity.team: each for each in known}

    @property
    def missing(self) -> PlatformError | None:
        """Return why some workspaces may not be connected yet."""
        if self._failed_logins:
            return next(iter(self._failed_logins.values()))[1]
        return PlatformError("Slack has not answered yet") if len(self._known) < len(self._bots) else None

    async def _start_logins(self) -> None:
        now = time.monotonic()
        for name, credentials in self._bots.items():
            waits = bool(self._known) and name in self._failed_logins and self._failed_logins[name][0] > now
            if name not in self._known and name not in self._logins and not waits:
                self._logins[name] = asyncio.create_task(self._log_in(name, credentials), name="slack auth.test")
        if not self._known:
            await asyncio.wait(self._logins.values(), timeout=_ALL_WITHIN_S)
        while not self._known and self._logins:
            await asyncio.wait(self._logins.values(), return_when=asyncio.FIRST_COMPLETED)

    async def _log_in(self, name: str, credentials: Credentials) -> None:
        try:
            self._known[name] = await self._authenticate(credentials)
            self._failed_logins.pop(name, None)
            self._trouble(self._part(name), "")
        except PlatformError as error:
            # Spread retries: the cause may be too many requests.
            again_s = _RETRY_LOGIN_S * (0.5 + self._jitter())
            self._failed_logins[name] = (time.monotonic() + max(again_s, error.retry_after_s or 0.0), error)
            self._trouble(self._part(name), str(error))
        finally:
            del self._logins[name]

    def _part(self, name: str) -> str:
        """Name a workspace by its position, because tokens must not be shown."""
        return f"workspace {list(self._bots).index(name) + 1} of {len(self._bots)}"

    def client(self, token: Secret) -> AsyncWebClient:
        return AsyncWebClient(
            token.reveal(),
            base_url=self.base_url,
            session=self.session,
            retry_handlers=[],
            logger=_silent_logger(),
        )

    async def close(self) -> None:
        knocks = list(self._logins.values())
        for each in knocks:
            each.cancel()
        await asyncio.gather(*knocks, return_exceptions=True)
        await self.session.close()

    async def _authenticate(self, credentials: Credentials) -> Workspace:
        client = self.client(credentials.bot)
        try:
            answer = await client.auth_test()
        except FAILURES as error:
            raise platform_error(error) from error
        try:
            identity = SlackIdentity(
                team=answer["team_id"],
                user=answer["user_id"],
                bot=answer.get("bot_id") or "",
                name=answer.get("user") or "hermes",
            )
        except KeyError as error:
            raise PlatformError(f"Slack's answer is invalid: {error} is missing") from error
        return Workspace(identity=identity, client=client, app=credentials.app)


def _silent_logger() -> logging.Logger:
    """Silence the library's logger, which could write whole messages."""
    logger = logging.getLogger("hermes.slack_sdk")
    logger.setLevel(logging.ERROR)
    return logger
