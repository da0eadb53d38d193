"""slack-sdk's Web API client, one a workspace, over one pool of connections.

The library repeats a call whose connection broke; ours do not, as nobody could tell whether the first one counted.
Its Socket Mode client is not used: it handles events side by side in any order, and answers on whatever connection
there is.
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
_KNOCK_AGAIN_S = 30.0  # at a workspace that did not let us in, while there are others
_ALL_WITHIN_S = 1.0  # in which all of them should have let us in; then those that have are enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Of one workspace. The app's secrets may be the same for several."""

    bot: Secret
    app: Secret | None = None  # for Socket Mode
    signing: Secret | None = None  # for the Events API


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackIdentity:
    """Who the bot is in one workspace."""

    team: str
    user: str
    bot: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    me: SlackIdentity
    client: AsyncWebClient
    app: Secret | None = None  # that brings its events, in Socket Mode


class SlackClient:
    """The workspaces we are in. Made on the running loop."""

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
        # For files, which may take their time as long as something comes.
        self.patience = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=answer_within_s)
        self._bots = {each.bot.reveal(): each for each in credentials}
        self._trouble = trouble  # told which one does not let us in, and why
        self._jitter = jitter  # between 0 and 1
        self._known: dict[str, Workspace] = {}  # by the bot's token, as all here
        self._shut: dict[str, tuple[float, PlatformError]] = {}  # that did not let us in, and when to ask again
        self._knocks: dict[str, asyncio.Task[None]] = {}  # that are not answered yet

    async def workspaces(self) -> Mapping[str, Workspace]:
        """By team, as many as let us in. Raises PlatformError when none does. One that does not answer holds up
        nobody in the others."""
        if len(self._known) < len(self._bots):
            await self._knock()
        if not self._known and self.missing is not None:
            raise self.missing
        known = [self._known[name] for name in self._bots if name in self._known]
        return {each.me.team: each for each in known}

    @property
    def missing(self) -> PlatformError | None:
        """Why there may be workspaces that are not known yet."""
        if self._shut:
            return next(iter(self._shut.values()))[1]
        return PlatformError("Slack has not answered yet") if len(self._known) < len(self._bots) else None

    async def _knock(self) -> None:
        now = time.monotonic()
        for name, credentials in self._bots.items():
            waits = bool(self._known) and name in self._shut and self._shut[name][0] > now
            if name not in self._known and name not in self._knocks and not waits:
                self._knocks[name] = asyncio.create_task(self._enter(name, credentials), name="slack auth.test")
        if not self._known:
            await asyncio.wait(self._knocks.values(), timeout=_ALL_WITHIN_S)
        while not self._known and self._knocks:
            await asyncio.wait(self._knocks.values(), return_when=asyncio.FIRST_COMPLETED)

    async def _enter(self, name: str, credentials: Credentials) -> None:
        try:
            self._known[name] = await self._introduced(credentials)
            self._shut.pop(name, None)
            self._trouble(self._part(name), "")
        except PlatformError as error:
            # Not all of them at the same moment: what keeps us out may be that there are too many of us.
            again_s = _KNOCK_AGAIN_S * (0.5 + self._jitter())
            self._shut[name] = (time.monotonic() + max(again_s, error.retry_after_s or 0.0), error)
            self._trouble(self._part(name), str(error))
        finally:
            del self._knocks[name]

    def _part(self, name: str) -> str:
        """A token is not shown: it is the how many-eth of those that were given."""
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
        knocks = list(self._knocks.values())
        for each in knocks:
            each.cancel()
        await asyncio.gather(*knocks, return_exceptions=True)
        await self.session.close()

    async def _introduced(self, credentials: Credentials) -> Workspace:
        client = self.client(credentials.bot)
        try:
            answer = await client.auth_test()
        except FAILURES as error:
            raise platform_error(error) from error
        try:
            me = SlackIdentity(
                team=answer["team_id"],
                user=answer["user_id"],
                bot=answer.get("bot_id") or "",
                name=answer.get("user") or "hermes",
            )
        except KeyError as error:
            raise PlatformError(f"the answer is not Slack's: {error} is missing") from error
        return Workspace(me=me, client=client, app=credentials.app)


def _silent_logger() -> logging.Logger:
    """The library would write whole messages to its log, if anybody turned that up."""
    logger = logging.getLogger("hermes.slack_sdk")
    logger.setLevel(logging.ERROR)
    return logger
