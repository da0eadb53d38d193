"""Notices to the home channels: each is sent once, outside of any conversation."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hermes.domain.access import home_channel
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.source import Place
from hermes.ports.chat import Outbox
from hermes.ports.given import Clock
from hermes.ports.sessions import Sessions

OURS = "home:"  # prefix of the outbox ids of these notices


class HomeService:
    def __init__(self, platforms: Sequence[str], *, sessions: Sessions, outbox: Outbox, clock: Clock) -> None:
        self._platforms = platforms  # configured ones
        self._sessions = sessions
        self._outbox = outbox
        self._clock = clock

    async def place(self, platform: str) -> Place | None:
        return home_channel.decode(platform, await self._sessions.fact(home_channel.fact_of(platform)))

    async def leave(self, platform: str, chat: str) -> bool:
        """Unset the platform's home channel if it is this chat. Returns False if it is not."""
        place = await self.place(platform)
        if place is None or place.chat != chat:
            return False
        await self._sessions.remember(home_channel.fact_of(platform), None)
        return True

    async def places(self) -> list[Place]:
        return [place for platform in self._platforms if (place := await self.place(platform)) is not None]

    async def tell(self, name: str, text: str, *, about: str = "", elsewhere: bool = False) -> bool:
        """Send a notice to one home channel, preferably of the platform that it is about. False: there is none.

        `elsewhere` excludes that platform, for notices that it cannot deliver.
        """
        places = [place for place in await self.places() if not (elsewhere and place.platform == about)]
        places.sort(key=lambda place: place.platform != about)
        for place in places[:1]:
            await self._enqueue(name, place, text)
        return bool(places)

    async def tell_all(self, name: str, text: str, *, except_in: Collection[tuple[str, str]] = ()) -> None:
        """Send a notice to every home channel except those in `except_in`, given as (platform, chat)."""
        for place in await self.places():
            if (place.platform, place.chat) not in except_in:
                await self._enqueue(f"{name}:{place.platform}", place, text)

    async def _enqueue(self, name: str, place: Place, text: str) -> None:
        outgoing = OutboxMessage(id=f"{OURS}{name}", kind=OutboxKind.NOTICE, place=place, text=text, at=self._clock())
        await self._outbox.enqueue(outgoing)
