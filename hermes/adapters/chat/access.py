"""Access control of a chat platform. Only listed or paired users can talk; others in groups get no answer."""

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
    """Access lists of one platform. A place is a group, a channel or one topic of it, never a private chat."""

    pairing: PairingService
    allowed: Collection[str] = ()  # user ids; "*" allows everybody, as a guest
    admins: Collection[str] = ()  # user ids that may talk and control the daemon
    pair: bool = True  # unknown users in a private chat can ask for pairing
    places: Collection[str] = ()  # if not empty, messages in other places are ignored
    open_places: Collection[str] = ()  # everybody there may talk, as a guest

    async def role(self, inbound: Inbound) -> Role | None:
        """Return the role of the sender in this place; None if access is denied."""
        in_open_place = False
        if inbound.chat_type != "dm":
            here = _names(inbound)
            if self.places and here.isdisjoint(self.places):
                return None
            in_open_place = not here.isdisjoint(self.open_places)
        known = await self._role_of(inbound)
        return Role.GUEST if known is None and in_open_place else known

    async def _role_of(self, inbound: Inbound) -> Role | None:
        """Return the highest role from the lists and from pairing."""
        user = inbound.user
        if user in self.admins:
            return Role.ADMIN
        if user in self.allowed and user != EVERYBODY:
            return Role.USER
        paired = await self.pairing.role(inbound.place.platform, user)
        return Role.GUEST if paired is None and EVERYBODY in self.allowed else paired

    async def deny(self, inbound: Inbound) -> None:
        if inbound.chat_type == "dm" and self.pair and not inbound.answers:
            await self.pairing.ask(inbound)
        else:
            logger.debug("{}: access denied to user {}", inbound.place.platform, inbound.user)


def _names(inbound: Inbound) -> set[str]:
    """Return the names that settings may use for the place: the chat, its former id, or a topic in it."""
    chats = {inbound.place.chat, inbound.former_chat} - {""}
    chats |= {chat.rpartition(".")[2] for chat in chats}  # Slack ids start with the workspace
    return chats | {f"{chat}:{inbound.place.thread}" for chat in chats if inbound.place.thread}
