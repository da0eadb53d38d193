"""Who may talk on a platform, and where. Nobody, unless a list or pairing says so; others in groups hear nothing."""

from __future__ import annotations

from collections.abc import Collection

from loguru import logger

from hermes.domain.access.role import Role
from hermes.domain.values import dataclass
from hermes.ports.chat import Inbound
from hermes.services.pairing import PairingService

EVERYBODY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessControl:
    """Places are groups and channels, or single topics of them; private chats are none."""

    pairing: PairingService
    allowed: Collection[str] = ()  # ids on the platform: users; "*" lets everybody talk, as a guest
    admins: Collection[str] = ()  # who may talk, and decide about the daemon
    pair: bool = True  # a stranger in a private chat can ask to be let in
    places: Collection[str] = ()  # not empty: what is said in other places is not heard
    open_places: Collection[str] = ()  # where whoever is there may talk, and nothing more

    async def role(self, inbound: Inbound) -> Role | None:
        """The role with which this person talks here; None: they may not."""
        in_open_place = False
        if inbound.chat_type != "dm":
            here = _names(inbound)
            if self.places and here.isdisjoint(self.places):
                return None
            in_open_place = not here.isdisjoint(self.open_places)
        known = await self._role_of(inbound)
        return Role.GUEST if known is None and in_open_place else known

    async def _role_of(self, inbound: Inbound) -> Role | None:
        """By the lists and by pairing; the highest of them counts."""
        user = inbound.user
        if user in self.admins:
            return Role.ADMIN
        if user in self.allowed and user != EVERYBODY:
            return Role.USER
        paired = await self.pairing.role(inbound.place.platform, user)
        return Role.GUEST if paired is None and EVERYBODY in self.allowed else paired

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
