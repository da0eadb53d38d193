"""Who may talk on a platform. Nobody, unless a list or pairing says so; strangers in groups are not even answered."""

from __future__ import annotations

from collections.abc import Collection

from loguru import logger

from hermes.adapters.chat.pairing_desk import PairingDesk
from hermes.ports.chat import Inbound
from hermes.values import dataclass

EVERYBODY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    pairing: PairingDesk
    allowed: Collection[str] = ()  # ids on the platform; "*" is everybody
    admins: Collection[str] = ()  # who may talk, and decide about the daemon
    pair: bool = True  # a stranger in a private chat can ask to be let in

    def is_admin(self, user: str) -> bool:
        return user in self.admins

    def trusts(self, user: str) -> bool:
        """Where there are no admins, whoever may talk is trusted."""
        return self.is_admin(user) or not self.admins

    async def admits(self, inbound: Inbound) -> bool:
        user = inbound.user
        if user in self.allowed or EVERYBODY in self.allowed or self.is_admin(user):
            return True
        return await self.pairing.admits(inbound.place.platform, user)

    async def turn_away(self, inbound: Inbound) -> None:
        if inbound.chat_type == "dm" and self.pair and not inbound.answers:
            await self.pairing.ask(inbound)
        else:
            logger.debug("{}: user {} is not allowed to talk here", inbound.place.platform, inbound.user)
