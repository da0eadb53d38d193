"""Channel history of a workspace since a point in time, read slowly and with an upper bound.

Slack's rate limits are respected. Missing scopes are reported, and what they hide is skipped. Channels that are not
visible are skipped.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from loguru import logger

from hermes.adapters.slack.failure import FAILURES, code_of, delivery_error, explain, platform_error, wait_of
from hermes.adapters.slack.rate_limiter import Allowance
from hermes.adapters.slack.workspace import Workspace

# Slack's names for direct messages, group messages and channels. Read one by one: each has its own scope, and a
# missing one must not hide the others.
_KINDS = ("im", "mpim", "private_channel", "public_channel")
_PAGE = 200
_MAX_PAGES = 5  # per channel or thread, and per kind of channels
_MAX_THREADS = 100
_TRIES = 5
_LACKING = "missing_scope"


class History:
    """One pass over a workspace."""

    def __init__(self, workspace: Workspace, pace: Allowance, lacks: Callable[[str], None]) -> None:
        self._workspace = workspace
        self._pace = pace
        self._lacks = lacks  # called with a missing scope and its remedy
        self._threads_left = _MAX_THREADS

    async def channels(self) -> list[str]:
        """Return the channels of the bot, direct messages first. Raises PlatformError, as all methods here."""
        ask = self._workspace.client.users_conversations
        found = []
        for kind in _KINDS:
            found += await self._pages(ask, "channels", types=kind, exclude_archived=True)
        return [str(each["id"]) for each in found]

    async def since(self, channel: str, oldest: float, threads: Iterable[str]) -> list[Mapping[str, Any]]:
        """Return the messages since then, in order: in the channel, the given threads, and new threads."""
        client = self._workspace.client
        about = {"channel": channel, "oldest": f"{oldest:.6f}"}
        said = await self._pages(client.conversations_history, "messages", **about)
        begun = [str(each["ts"]) for each in said if float(each.get("latest_reply") or 0) > oldest]
        for thread in dict.fromkeys((*threads, *begun)):
            if self._threads_left == 0:
                logger.warning("slack: backfill: more than {} active threads, the rest is skipped", _MAX_THREADS)
            self._threads_left -= 1
            if self._threads_left >= 0:
                said += await self._pages(client.conversations_replies, "messages", ts=thread, **about)
        once = {str(each["ts"]): each for each in said if float(each.get("ts") or 0) > oldest}
        return sorted(once.values(), key=lambda each: float(each["ts"]))

    async def _pages(self, method: Callable[..., Awaitable[Any]], what: str, **about: Any) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        cursor = None
        for _ in range(_MAX_PAGES):
            answer = await self._answer(method, limit=_PAGE, cursor=cursor, **about)
            found += answer.get(what) or ()
            cursor = (answer.get("response_metadata") or {}).get("next_cursor")
            if not cursor:
                return found
        logger.warning("slack: backfill: too many messages in {}, read {}", about, len(found))
        return found

    async def _answer(self, method: Callable[..., Awaitable[Any]], **about: Any) -> Mapping[str, Any]:
        for left in reversed(range(_TRIES)):
            await asyncio.sleep(self._pace.take(self._workspace.identity.team, time.monotonic()))
            try:
                answer: Mapping[str, Any] = await method(**about)
            except FAILURES as error:
                if code_of(error) == _LACKING:
                    self._lacks(explain(error))
                    return {}
                if delivery_error(error).gone:
                    logger.debug("slack: backfill: cannot read channel {}: {}", about.get("channel"), explain(error))
                    return {}
                if (wait_s := wait_of(error)) is None or not left:
                    raise platform_error(error) from error
                await asyncio.sleep(wait_s)
            else:
                return answer
        raise AssertionError(about)  # unreachable: the last try returns or raises
