"""A platform whose messages may have a gap for something that must not be stored: it is filled as they are sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from hermes.ports.chat import Abilities, Platform
from hermes.types import Obligation, Place


class DiscreetPlatform:
    def __init__(self, platform: Platform, *, gap: str, fill: Callable[[Obligation, str], Awaitable[str]]) -> None:
        self._platform = platform
        self._gap = gap
        self._fill = fill  # raises DeliveryError

    @property
    def name(self) -> str:
        return self._platform.name

    @property
    def abilities(self) -> Abilities:
        return self._platform.abilities

    def parts(self, text: str) -> Sequence[str]:
        return self._platform.parts(text)

    async def ready(self, place: Place) -> None:
        await self._platform.ready(place)

    async def send(self, obligation: Obligation, text: str) -> str:
        return await self._platform.send(
            obligation, await self._fill(obligation, text) if self._gap in text else text
        )

    async def send_file(self, obligation: Obligation, path: str, text: str) -> str:
        return await self._platform.send_file(obligation, path, text)

    async def edit(self, obligation: Obligation, message: str, text: str) -> None:
        if self._gap not in text:  # else the message says more than is known here, and stays
            await self._platform.edit(obligation, message, text)

    async def delete(self, obligation: Obligation, message: str) -> None:
        await self._platform.delete(obligation, message)

    async def find(self, obligation: Obligation, part: int) -> str | None:
        return await self._platform.find(obligation, part)

    async def show_typing(self, place: Place) -> None:
        await self._platform.show_typing(place)

    async def show_waiting(self, place: Place, *, over: bool = False) -> None:
        await self._platform.show_waiting(place, over=over)
