"""Thread context: the bot's participation in a thread, and the messages before its first mention.

Participation is cached and otherwise read from Slack: the bot takes part in a thread where it was mentioned or has
answered. Earlier messages are added to the message that mentions it first.
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
_MAX_CHARACTERS = 2000  # per message
_PAGE = 200
_MAX_PAGES = 5
_TRIES = 3
_LONGEST_WAIT_S = 2.0  # Slack's timeout is three seconds
_MAX_REMEMBERED = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadContext:
    ours: bool  # the message is for the bot
    foreign: tuple[Foreign, ...] = ()  # earlier messages of the thread


class Threads:
    def __init__(self, names: UserNames) -> None:
        self._names = names
        self._participates: dict[tuple[str, str], bool] = {}  # cached participation

    async def context_of(self, workspace: Workspace, event: ParsedEvent) -> ThreadContext:
        """Return the context of a message. Raises PlatformError if it is unknown whether it is for the bot."""
        place = event.inbound.place
        key = (place.chat, place.thread)
        if not event.in_thread:
            return ThreadContext(ours=True)
        known = self._participates.get(key)
        if known or (known is False and not event.sure):
            return ThreadContext(ours=bool(known))
        earlier = await self._earlier(workspace, event)
        taken_part = _taken_part(earlier, workspace.identity, place.thread, direct=is_direct(_channel(event)))
        ours = event.sure or taken_part or _began(earlier, workspace.identity)
        if not ours:
            self._remember(key, part=False)
        first = ours and not taken_part and not event.inbound.text.startswith("/")
        return ThreadContext(
            ours=ours, foreign=await self._foreign(earlier[-_MAX_MESSAGES:], workspace) if first else ()
        )

    def joined(self, event: ParsedEvent) -> None:
        """Note that a message was stored: the bot takes part from now on."""
        if event.inbound.place.thread:
            self._remember((event.inbound.place.chat, event.inbound.place.thread), part=True)

    async def _foreign(self, earlier: Sequence[Mapping[str, Any]], workspace: Workspace) -> tuple[Foreign, ...]:
        transcript = _transcript(earlier, workspace.identity)
        people = {user for message in earlier for user in (_author(message), *mentioned(_text(message)))}
        others = sorted(people - {"", workspace.identity.user})
        if not transcript:
            return ()
        named = with_names(transcript, await self._names.of(workspace, others))
        return (Foreign(kind=ForeignKind.THREAD, text=named),)

    async def _earlier(self, workspace: Workspace, event: ParsedEvent) -> Sequence[Mapping[str, Any]]:
        for left in reversed(range(_TRIES)):
            try:
                return await _fetch(workspace, event)
            except FAILURES as error:
                final = code_of(error) and wait_of(error) is None
                if final or (event.sure and not left):
                    logger.warning("slack: cannot read the thread of {}: {}", event.inbound.id, explain(error))
                    return ()
                if not left:
                    raise platform_error(error) from error
                await asyncio.sleep(min(_LONGEST_WAIT_S, wait_of(error) or 0.2))
        return ()

    def _remember(self, key: tuple[str, str], *, part: bool) -> None:
        if len(self._participates) >= _MAX_REMEMBERED and key not in self._participates:
            del self._participates[next(iter(self._participates))]
        self._participates[key] = part


async def _fetch(workspace: Workspace, event: ParsedEvent) -> list[Mapping[str, Any]]:
    """Return the messages before this one, oldest first."""
    place = event.inbound.place
    found: list[Mapping[str, Any]] = []
    cursor = None
    for _ in range(_MAX_PAGES):
        answer = await workspace.client.conversations_replies(
            channel=_channel(event), ts=place.thread, latest=place.message, limit=_PAGE, cursor=cursor
        )
        found += answer.get("messages") or ()
        cursor = (answer.get("response_metadata") or {}).get("next_cursor")
        if not cursor:
            break
    return [each for each in found if _moment(each) < float(place.message)]


def _channel(event: ParsedEvent) -> str:
    return team_and_channel(event.inbound.place.chat)[1]


def _moment(message: Mapping[str, Any]) -> float:
    return float(message.get("ts") or 0)


def _text(message: Mapping[str, Any]) -> str:
    return str(message.get("text") or "")


def _author(message: Mapping[str, Any]) -> str:
    return str(message.get("user") or "")


def _is_mine(message: Mapping[str, Any], identity: SlackIdentity) -> bool:
    return message.get("user") == identity.user or bool(identity.bot and message.get("bot_id") == identity.bot)


def _taken_part(earlier: Sequence[Mapping[str, Any]], identity: SlackIdentity, thread: str, *, direct: bool) -> bool:
    """Return True if the bot was mentioned there or has answered."""
    for message in earlier:
        mine = _is_mine(message, identity)
        if mine and message.get("ts") != thread:
            return True
        called = mentions(_text(message), identity.user) or (direct and message.get("ts") != thread)
        if called and not mine and not message.get("bot_id"):
            return True
    return False


def _began(earlier: Sequence[Mapping[str, Any]], identity: SlackIdentity) -> bool:
    return bool(earlier) and _is_mine(earlier[0], identity)


def _transcript(earlier: Sequence[Mapping[str, Any]], identity: SlackIdentity) -> str:
    lines = []
    for message in earlier:
        text = readable(_text(message), identity.user, identity.name)[:_MAX_CHARACTERS].strip()
        who = "you" if _is_mine(message, identity) else f"@{_author(message) or message.get('username') or 'a bot'}"
        if text:
            lines.append(f"{who}: {text}")
    return "\n".join(lines)
