"""What stands in a workspace's channels since a moment, as Slack keeps it: read slowly, and never more than so much.

Slack's own wish to be left alone is honoured. What the app may not read is left out and named: a person has to change
that. A channel that cannot be seen (any more) holds nothing for us.
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

# Slack's names for direct messages, those of several people, and channels. Asked for one by one: each has a scope of
# its own, and one that is missing is to hide nothing of the others.
_KINDS = ("im", "mpim", "private_channel", "public_channel")
_PAGE = 200
_MAX_PAGES = 5  # of one channel or thread, and of each kind of channels
_MAX_THREADS = 100
_TRIES = 5
_LACKING = "missing_scope"


class History:
    """One look at a workspace."""

    def __init__(self, workspace: Workspace, pace: Allowance, lacks: Callable[[str], None]) -> None:
        self._workspace = workspace
        self._pace = pace
        self._lacks = lacks  # told what the app may not do, and what helps
        self._threads_left = _MAX_THREADS

    async def channels(self) -> list[str]:
        """Where the bot is a member; direct messages first. Raises PlatformError, as everything here."""
        ask = self._workspace.client.users_conversations
        found = []
        for kind in _KINDS:
            found += await self._pages(ask, "channels", types=kind, exclude_archived=True)
        return [str(each["id"]) for each in found]

    async def since(self, channel: str, oldest: float, threads: Iterable[str]) -> list[Mapping[str, Any]]:
        """What was said there after that moment, in its order: on top, in those threads, and in those begun since."""
        client = self._workspace.client
        about = {"channel": channel, "oldest": f"{oldest:.6f}"}
        said = await self._pages(client.conversations_history, "messages", **about)
        begun = [str(each["ts"]) for each in said if float(each.get("latest_reply") or 0) > oldest]
        for thread in dict.fromkeys((*threads, *begun)):
            if self._threads_left == 0:
                logger.warning("slack: more than {} threads went on while we were away", _MAX_THREADS)
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
        logger.warning("slack: more was said than can be read of {}: {} messages are", about, len(found))
        return found

    async def _answer(self, method: Callable[..., Awaitable[Any]], **about: Any) -> Mapping[str, Any]:
        for left in reversed(range(_TRIES)):
            await asyncio.sleep(self._pace.take(self._workspace.me.team, time.monotonic()))
            try:
                answer: Mapping[str, Any] = await method(**about)
            except FAILURES as error:
                if code_of(error) == _LACKING:
                    self._lacks(explain(error))
                    return {}
                if delivery_error(error).gone:
                    logger.debug("slack: {} cannot be read: {}", about.get("channel"), explain(error))
                    return {}
                if (wait_s := wait_of(error)) is None or not left:
                    raise platform_error(error) from error
                await asyncio.sleep(wait_s)
            else:
                return answer
        raise AssertionError(about)  # the last try returns or raises
