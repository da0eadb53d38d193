"""What an operator can do on chat platforms: let people in, post without the agent, and see what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from hermes.adapters.chat.home_desk import HomeDesk
from hermes.adapters.chat.pairing_desk import PairingDesk
from hermes.errors import BadInputError
from hermes.ports.chat import Outgoing
from hermes.ports.given import Clock
from hermes.types import DeadLetter, Obligation, Owed, Place, Sent
from hermes.values import dataclass

POST = "send:"  # how the ids of these obligations begin


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOffice:
    platforms: Sequence[str]  # that are configured
    pairing: PairingDesk
    homes: HomeDesk
    outgoing: Outgoing
    clock: Clock

    def check(self, platform: str) -> str:
        if platform not in self.platforms:
            raise BadInputError(_unknown(platform, self.platforms), code="unknown_platform")
        return platform

    async def revoke(self, platform: str, user: str) -> bool:
        """Nobody of that id may talk any more. True: the home channel was their direct chat, and is gone as well."""
        return await self.homes.leave(platform, await self.pairing.revoke(platform, user))

    async def address(self, platform: str, chat: str, thread: str) -> Place:
        """Where a post goes: the home channel unless a chat is named, on the only platform unless one is named."""
        if chat:
            return Place(platform=self._only(platform), chat=chat, thread=thread)
        homes = [place for place in await self.homes.places() if platform in ("", place.platform)]
        if len(homes) > 1:
            raise _which([place.platform for place in homes])
        if homes:
            return homes[0]
        on = f" on {self.check(platform)}" if platform or not self.platforms else ""
        raise BadInputError(
            f"there is no home channel{on}: say /sethome in the chat that is to be it", code="no_home"
        )

    def _only(self, platform: str) -> str:
        if not platform and len(self.platforms) == 1:
            return self.platforms[0]
        if not platform and self.platforms:
            raise _which(self.platforms)
        return self.check(platform)

    async def post(self, name: str, place: Place, text: str) -> None:
        """Have it said there; twice under the same name is once."""
        owed = Obligation(id=f"{POST}{name}", kind=Owed.NOTICE, place=place, text=text, at=self.clock())
        await self.outgoing.oblige(owed)

    async def progress(self, name: str) -> dict[str, Any]:
        found = await self.outgoing.progress(f"{POST}{name}")
        match found:
            case Obligation():
                return {"state": "waiting", "tries": found.tries, "problem": found.problem}
            case Sent():
                state = {"state": "sent", "messages": list(found.messages), "sent_at": found.sent_at}
                return {**state, "repeated": found.repeated}
            case DeadLetter():
                return {"state": "failed", "problem": found.problem, "dead_letter": found.id}
        raise BadInputError(f"nothing was posted as {name}", code="unknown_post")


def _which(platforms: Sequence[str]) -> BadInputError:
    return BadInputError(f"say on which platform, with --platform: {' or '.join(platforms)}", code="unknown_platform")


def _unknown(platform: str, platforms: Sequence[str]) -> str:
    if not platforms:
        return "no chat platform is set up; `hermes setup telegram` or `hermes setup slack`"
    near = get_close_matches(platform, platforms, n=1)
    known = f"did you mean {near[0]}?" if near else f"there is {_listed(platforms)}"
    return f"{platform} is not configured: {known}"


def _listed(platforms: Sequence[str]) -> str:
    return " and ".join(platforms)
