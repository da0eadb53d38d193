"""Threads of others: whether we take part in one, and what was said there before we were called.

Nothing is kept but a memory of threads looked at, which may be lost: Slack itself tells. We take part where we were
called or have answered. What stands before the message that calls us for the first time comes along with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from loguru import logger

from hermes.adapters.slack.address import is_direct, team_and_channel
from hermes.adapters.slack.failure import FAILURES, code_of, explain, platform_error, wait_of
from hermes.adapters.slack.inbound.event import ParsedEvent
from hermes.adapters.slack.inbound.message_text import mentioned, mentions, readable
from hermes.adapters.slack.names import UserNames, with_names
from hermes.adapters.slack.workspace import SlackIdentity, Workspace
from hermes.domain.values import dataclass
from hermes.ports.chat import Foreign, ForeignKind

_MAX_MESSAGES = 30
_MAX_CHARACTERS = 2000  # of each
_PAGE = 200
_MAX_PAGES = 5
_TRIES = 3
_LONGEST_WAIT_S = 2.0  # Slack wants an answer within three seconds
_MAX_REMEMBERED = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadContext:
    ours: bool  # it is for us
    foreign: tuple[Foreign, ...] = ()  # what was said in the thread before


class Threads:
    def __init__(self, names: UserNames) -> None:
        self._names = names
        self._part: dict[tuple[str, str], bool] = {}  # whether we take part

    async def look(self, workspace: Workspace, heard: ParsedEvent) -> ThreadContext:
        """Raises PlatformError where nobody can tell whether the message is for us."""
        place = heard.inbound.place
        key = (place.chat, place.thread)
        if not heard.in_thread:
            return ThreadContext(ours=True)
        known = self._part.get(key)
        if known or (known is False and not heard.sure):
            return ThreadContext(ours=bool(known))
        earlier = await self._earlier(workspace, heard)
        taken_part = _taken_part(earlier, workspace.me, place.thread, direct=is_direct(_channel(heard)))
        ours = heard.sure or taken_part or _began(earlier, workspace.me)
        if not ours:
            self._remember(key, part=False)
        first = ours and not taken_part and not heard.inbound.text.startswith("/")
        return ThreadContext(
            ours=ours, foreign=await self._told(earlier[-_MAX_MESSAGES:], workspace) if first else ()
        )

    def joined(self, heard: ParsedEvent) -> None:
        """A message there was stored: from now on we take part."""
        if heard.inbound.place.thread:
            self._remember((heard.inbound.place.chat, heard.inbound.place.thread), part=True)

    async def _told(self, earlier: Sequence[Mapping[str, Any]], workspace: Workspace) -> tuple[Foreign, ...]:
        told = _told(earlier, workspace.me)
        people = {user for message in earlier for user in (_author(message), *mentioned(_text(message)))}
        others = sorted(people - {"", workspace.me.user})
        if not told:
            return ()
        named = with_names(told, await self._names.of(workspace, others))
        return (Foreign(kind=ForeignKind.THREAD, text=named),)

    async def _earlier(self, workspace: Workspace, heard: ParsedEvent) -> Sequence[Mapping[str, Any]]:
        for left in reversed(range(_TRIES)):
            try:
                return await _fetch(workspace, heard)
            except FAILURES as error:
                final = code_of(error) and wait_of(error) is None
                if final or (heard.sure and not left):
                    logger.warning("slack: the thread of {} cannot be read: {}", heard.inbound.id, explain(error))
                    return ()
                if not left:
                    raise platform_error(error) from error
                await asyncio.sleep(min(_LONGEST_WAIT_S, wait_of(error) or 0.2))
        return ()

    def _remember(self, key: tuple[str, str], *, part: bool) -> None:
        if len(self._part) >= _MAX_REMEMBERED and key not in self._part:
            del self._part[next(iter(self._part))]
        self._part[key] = part


async def _fetch(workspace: Workspace, heard: ParsedEvent) -> list[Mapping[str, Any]]:
    """The messages before this one, the oldest first."""
    place = heard.inbound.place
    found: list[Mapping[str, Any]] = []
    cursor = None
    for _ in range(_MAX_PAGES):
        answer = await workspace.client.conversations_replies(
            channel=_channel(heard), ts=place.thread, latest=place.message, limit=_PAGE, cursor=cursor
        )
        found += answer.get("messages") or ()
        cursor = (answer.get("response_metadata") or {}).get("next_cursor")
        if not cursor:
            break
    return [each for each in found if _moment(each) < float(place.message)]


def _channel(heard: ParsedEvent) -> str:
    return team_and_channel(heard.inbound.place.chat)[1]


def _moment(message: Mapping[str, Any]) -> float:
    return float(message.get("ts") or 0)


def _text(message: Mapping[str, Any]) -> str:
    return str(message.get("text") or "")


def _author(message: Mapping[str, Any]) -> str:
    return str(message.get("user") or "")


def _is_mine(message: Mapping[str, Any], me: SlackIdentity) -> bool:
    return message.get("user") == me.user or bool(me.bot and message.get("bot_id") == me.bot)


def _taken_part(earlier: Sequence[Mapping[str, Any]], me: SlackIdentity, thread: str, *, direct: bool) -> bool:
    """Whether somebody has called us there, or we have answered."""
    for message in earlier:
        mine = _is_mine(message, me)
        if mine and message.get("ts") != thread:
            return True
        called = mentions(_text(message), me.user) or (direct and message.get("ts") != thread)
        if called and not mine and not message.get("bot_id"):
            return True
    return False


def _began(earlier: Sequence[Mapping[str, Any]], me: SlackIdentity) -> bool:
    return bool(earlier) and _is_mine(earlier[0], me)


def _told(earlier: Sequence[Mapping[str, Any]], me: SlackIdentity) -> str:
    lines = []
    for message in earlier:
        text = readable(_text(message), me.user, me.name)[:_MAX_CHARACTERS].strip()
        who = "you" if _is_mine(message, me) else f"@{_author(message) or message.get('username') or 'a bot'}"
        if text:
            lines.append(f"{who}: {text}")
    return "\n".join(lines)
