"""Who may talk on a platform, and where. Nobody, unless a list or pairing says so; others in groups hear nothing."""

from __future__ import annotations

from collections.abc import Collection

from loguru import logger

from hermes.adapters.chat.pairing_desk import PairingDesk
from hermes.ports.chat import Inbound
from hermes.values import dataclass

EVERYBODY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Places are groups and channels, or single topics of them; private chats are none."""

    pairing: PairingDesk
    allowed: Collection[str] = ()  # ids on the platform; "*" is everybody
    admins: Collection[str] = ()  # who may talk, and decide about the daemon
    pair: bool = True  # a stranger in a private chat can ask to be let in
    places: Collection[str] = ()  # not empty: what is said in other places is not heard
    open_places: Collection[str] = ()  # where whoever is there may talk, and nothing more

    def is_admin(self, user: str) -> bool:
        return user in self.admins

    async def trusts(self, inbound: Inbound) -> bool:
        """Where there are no admins, whoever was let in is trusted; being in an open place is not enough."""
        return self.is_admin(inbound.user) or (not self.admins and await self._knows(inbound))

    async def admits(self, inbound: Inbound) -> bool:
        if inbound.chat_type != "dm":
            here = _names(inbound)
            if self.places and here.isdisjoint(self.places):
                return False
            if not here.isdisjoint(self.open_places):
                return True
        return await self._knows(inbound)

    async def _knows(self, inbound: Inbound) -> bool:
        user = inbound.user
        if user in self.allowed or EVERYBODY in self.allowed or self.is_admin(user):
            return True
        return await self.pairing.admits(inbound.place.platform, user)

    async def turn_away(self, inbound: Inbound) -> None:
        if inbound.chat_type == "dm" and self.pair and not inbound.answers:
            await self.pairing.ask(inbound)
        else:
            logger.debug("{}: user {} is not allowed to talk here", inbound.place.platform, inbound.user)


def _names(inbound: Inbound) -> set[str]:
    """What settings may call a place: its chat, also by its former id, or a topic in it."""
    chats = {inbound.place.chat, inbound.former_chat} - {""}
    chats |= {chat.rpartition(".")[2] for chat in chats}  # Slack's have the workspace in front
    return chats | {f"{chat}:{inbound.place.thread}" for chat in chats if inbound.place.thread}
