"""Platform wrapper that fills placeholders for secrets when a message is sent, so that no secret is stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.source import Place
from hermes.ports.chat import Abilities, Platform


class SecretMaskingPlatform(Platform):
    def __init__(self, platform: Platform, *, gap: str, fill: Callable[[OutboxMessage, str], Awaitable[str]]) -> None:
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

    async def send(self, outgoing: OutboxMessage, text: str) -> str:
        return await self._platform.send(outgoing, await self._fill(outgoing, text) if self._gap in text else text)

    async def send_file(self, outgoing: OutboxMessage, path: str, text: str) -> str:
        return await self._platform.send_file(outgoing, path, text)

    async def edit(self, outgoing: OutboxMessage, message: str, text: str) -> None:
        if self._gap not in text:  # the sent message has a secret that is unknown here: keep it
            await self._platform.edit(outgoing, message, text)

    async def delete(self, outgoing: OutboxMessage, message: str) -> None:
        await self._platform.delete(outgoing, message)

    async def find(self, outgoing: OutboxMessage, part: int) -> str | None:
        return await self._platform.find(outgoing, part)

    async def show_typing(self, place: Place) -> None:
        await self._platform.show_typing(place)

    async def show_waiting(self, place: Place, *, over: bool = False) -> None:
        await self._platform.show_waiting(place, over=over)
