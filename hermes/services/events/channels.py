"""Channel directory: chats in which people wrote, with their names; and delivery targets by those names.

A chat is learned from its messages. Its name is written once and when it changes, not with every message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from loguru import logger

from hermes.domain.errors import BadInputError, HermesError
from hermes.domain.event.channel import MAX_PER_PLATFORM, PREFIX, Channel, channel_of, decode_channel, named
from hermes.domain.event.target import DeliveryTarget, TargetKind, parse_targets
from hermes.domain.read.reader import Reader
from hermes.domain.source import Place, Source
from hermes.domain.values import replace
from hermes.ports.channels import Channels
from hermes.ports.given import Clock
from hermes.ports.sessions import Sessions
from hermes.ports.storage import Journal
from hermes.services.home import HomeService

NameOf = Callable[[Place], Awaitable[str]]  # asks the platform; empty if it does not know
_MAX_ASKING: Final = 100  # chats whose names are being asked for


async def _no_name(_place: Place) -> str:
    return ""


class ChannelDirectory(Channels):
    def __init__(
        self,
        *,
        sessions: Sessions,
        journal: Journal,
        homes: HomeService,
        platforms: Sequence[str],
        clock: Clock,
    ) -> None:
        self._sessions = sessions
        self._journal = journal
        self._homes = homes
        self._platforms = platforms
        self._clock = clock
        self._known: dict[tuple[str, str], Channel] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.name_of: dict[str, NameOf] = {}  # by platform: those whose messages do not name their chat

    # ------------------------------------------------------------ learning

    def note(self, source: Source) -> None:
        """Learn the chat of a message. Never waits; a name that cannot be stored is learned with the next message."""
        seen = channel_of(source, self._clock())
        if seen is None:
            return
        known = self._known.get((seen.platform, seen.chat))
        if known is not None and (not seen.name or (known.name, known.kind) == (seen.name, seen.kind)):
            return
        if len(self._tasks) >= _MAX_ASKING:
            return
        self._known[seen.platform, seen.chat] = seen
        task = asyncio.create_task(self._learn(seen), name=f"channel {seen.platform}:{seen.chat}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _learn(self, seen: Channel) -> None:
        try:
            stored = await self._stored(seen)
            if not seen.name and (stored is None or not stored.name):
                ask = self.name_of.get(seen.platform, _no_name)
                seen = replace(seen, name=await ask(seen.place))
            if stored is not None and (not seen.name or (stored.name, stored.kind) == (seen.name, seen.kind)):
                self._known[seen.platform, seen.chat] = stored
                return
            if stored is None and sum(key[0] == seen.platform for key in self._known) > MAX_PER_PLATFORM:
                return
            await self._sessions.remember(seen.fact, seen.encoded())
            self._known[seen.platform, seen.chat] = seen
        except HermesError as error:
            self._known.pop((seen.platform, seen.chat), None)
            logger.warning("channels: could not store {}:{}: {}", seen.platform, seen.chat, error)

    async def _stored(self, channel: Channel) -> Channel | None:
        raw = await self._sessions.fact(channel.fact)
        return None if raw is None else decode_channel(channel.fact, raw)

    async def close(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ------------------------------------------------------------ looking up

    async def channels(self, platform: str = "") -> list[Channel]:
        """Return all known chats, by platform and name."""
        found = await self._journal.fetch(_read_channels)
        return sorted(
            (each for each in found if platform in ("", each.platform)),
            key=lambda each: (each.platform, each.name.casefold(), each.chat),
        )

    async def places(self, texts: Sequence[str], origin: Place | None = None) -> list[Place]:
        """Return the places of delivery targets. Raises BadInputError for one that leads nowhere."""
        try:
            targets = parse_targets(tuple(texts))
        except ValueError as error:
            raise BadInputError(str(error), code="bad_target") from error
        found = [place for target in targets for place in await self._places(target, origin)]
        return list(dict.fromkeys(found))

    async def _places(self, target: DeliveryTarget, origin: Place | None) -> list[Place]:
        match target.kind:
            case TargetKind.LOCAL:
                return []
            case TargetKind.ORIGIN:
                return [] if origin is None else [origin]
            case TargetKind.ALL:
                return await self._homes.places()
            case TargetKind.HOME:
                return [await self._home(target.platform)]
            case TargetKind.CHAT:
                return [await self._chat(target)]

    async def _home(self, platform: str) -> Place:
        self._check(platform)
        homes = [place for place in await self._homes.places() if platform in ("", place.platform)]
        if not homes:
            on = f" on {platform}" if platform else ""
            raise BadInputError(f"there is no home channel{on}: send /sethome in a chat", code="no_home")
        return homes[0]

    async def _chat(self, target: DeliveryTarget) -> Place:
        self._check(target.platform)
        known = await self.channels(target.platform)
        found = named(known, target.platform, target.chat)
        if len(found) > 1:
            ids = ", ".join(each.chat for each in found[:10])
            raise BadInputError(f"{target} is the name of several chats: {ids}; use the id", code="ambiguous_channel")
        if found:
            return Place(platform=target.platform, chat=found[0].chat, thread=target.thread)
        if _looks_like_name(target.chat):
            from difflib import get_close_matches  # noqa: PLC0415 - only for mistakes

            near = get_close_matches(target.chat, [each.name for each in known], n=1)
            hint = f"did you mean {near[0]}?" if near else "`hermes channels` lists those in which people wrote"
            raise BadInputError(f"no chat is known as {target}; {hint}", code="unknown_channel")
        return Place(platform=target.platform, chat=target.chat, thread=target.thread)

    def _check(self, platform: str) -> None:
        if platform and platform not in self._platforms:
            configured = ", ".join(self._platforms) or "none"
            raise BadInputError(f"{platform} is not configured; configured: {configured}", code="unknown_platform")


def _looks_like_name(chat: str) -> bool:
    """Return whether a text cannot be an id: those of chats are digits, or capitals and digits."""
    plain = chat.replace(".", "").replace(":", "")
    return not (chat.lstrip("-").isdecimal() or (plain.isalnum() and plain.isupper()))


def _read_channels(reader: Reader) -> list[Channel]:
    names = reader.facts(PREFIX)
    found = (decode_channel(name, reader.fact(name) or b"") for name in names)
    return [each for each in found if each is not None]
