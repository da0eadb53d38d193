"""The desk of the home channels: says there, once, what Hermes has to tell and no conversation is the place for."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hermes.domain.access import home_channel
from hermes.domain.types import OutboxKind, OutboxMessage, Place
from hermes.ports.chat import Outbox
from hermes.ports.given import Clock
from hermes.ports.sessions import Sessions

OURS = "home:"  # how the ids of these obligations begin


class HomeService:
    def __init__(self, platforms: Sequence[str], *, sessions: Sessions, outbox: Outbox, clock: Clock) -> None:
        self._platforms = platforms  # that are configured
        self._sessions = sessions
        self._outbox = outbox
        self._clock = clock

    async def place(self, platform: str) -> Place | None:
        return home_channel.decode(platform, await self._sessions.fact(home_channel.fact_of(platform)))

    async def leave(self, platform: str, chat: str) -> bool:
        """That chat is no home any more. False: it was none."""
        place = await self.place(platform)
        if place is None or place.chat != chat:
            return False
        await self._sessions.remember(home_channel.fact_of(platform), None)
        return True

    async def places(self) -> list[Place]:
        return [place for platform in self._platforms if (place := await self.place(platform)) is not None]

    async def tell(self, name: str, text: str, *, about: str = "", elsewhere: bool = False) -> bool:
        """In one home: that of the platform it is about, or else of another one. False: there is none.

        `elsewhere`: it is no use to say it on that platform itself.
        """
        places = [place for place in await self.places() if not (elsewhere and place.platform == about)]
        places.sort(key=lambda place: place.platform != about)
        for place in places[:1]:
            await self._say(name, place, text)
        return bool(places)

    async def tell_all(self, name: str, text: str, *, except_in: Collection[tuple[str, str]] = ()) -> None:
        """`except_in`: chats, with their platforms, that are told in other words."""
        for place in await self.places():
            if (place.platform, place.chat) not in except_in:
                await self._say(f"{name}:{place.platform}", place, text)

    async def _say(self, name: str, place: Place, text: str) -> None:
        outgoing = OutboxMessage(id=f"{OURS}{name}", kind=OutboxKind.NOTICE, place=place, text=text, at=self._clock())
        await self._outbox.enqueue(outgoing)
