"""Operator actions on chat platforms: revoke pairings, post without the agent, read delivery progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hermes.domain.access import home_channel
from hermes.domain.errors import AlreadySeenError, BadInputError, RefusedError, UnknownSessionError
from hermes.domain.ids import SessionKey
from hermes.domain.outbox_message import DeadLetter, DeliveredMessage, OutboxKind, OutboxMessage
from hermes.domain.session.protocol import NotePost
from hermes.domain.source import Place
from hermes.domain.text.fence import fenced
from hermes.domain.values import dataclass
from hermes.ports.chat import Outbox
from hermes.ports.given import Clock
from hermes.ports.sessions import Sessions
from hermes.services.home import HomeService
from hermes.services.pairing import PairingService
from hermes.system import random_id

_KINDS = ("dm", "group", "channel", "thread")
_MAX_SHOWN = 2000  # characters of a post that the model sees
POST = "send:"  # prefix of the outbox ids of posts


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatServices:
    platforms: Sequence[str]  # configured ones
    pairing: PairingService
    homes: HomeService
    outbox: Outbox
    clock: Clock
    sessions: Sessions
    new_marker: Callable[[], str] = random_id.new_marker

    def check(self, platform: str) -> str:
        if platform not in self.platforms:
            raise BadInputError(_unknown(platform, self.platforms), code="unknown_platform")
        return platform

    async def revoke(self, platform: str, user: str) -> bool:
        """Revoke a pairing. Returns True if the home channel was the user's private chat, which is unset, too."""
        return await self.homes.leave(platform, await self.pairing.revoke(platform, user))

    async def address(self, platform: str, chat: str, thread: str) -> Place:
        """Return the place of a post: the named chat, else the home channel, of the named or only platform."""
        if chat:
            return Place(platform=self._only(platform), chat=chat, thread=thread)
        homes = [place for place in await self.homes.places() if platform in ("", place.platform)]
        if len(homes) > 1:
            raise _which([place.platform for place in homes])
        if homes:
            return homes[0]
        on = f" on {self.check(platform)}" if platform or not self.platforms else ""
        raise BadInputError(f"there is no home channel{on}: send /sethome in a chat", code="no_home")

    def _only(self, platform: str) -> str:
        if not platform and len(self.platforms) == 1:
            return self.platforms[0]
        if not platform and self.platforms:
            raise _which(self.platforms)
        return self.check(platform)

    async def post(self, name: str, place: Place, text: str) -> None:
        """Enqueue a post. Posting twice under one name sends one message.

        The open session of that chat takes it, so that the agent knows of it. Without one, the chat only gets it.
        """
        outgoing = OutboxMessage(id=f"{POST}{name}", kind=OutboxKind.NOTICE, place=place, text=text, at=self.clock())
        wish = NotePost(outgoing=outgoing, shown=fenced(text, self.new_marker(), max_chars=_MAX_SHOWN))
        for key in await self._keys(place):
            if (session := await self.sessions.bound(key)) is None:
                continue
            try:
                await self.sessions.post((await self.sessions.conversation(session)).id, wish)
            except AlreadySeenError:
                return
            except (RefusedError, UnknownSessionError):  # it has ended
                continue
            return
        await self.outbox.enqueue(outgoing)

    async def _keys(self, place: Place) -> list[SessionKey]:
        """Return the keys that conversations in a place can have. In a group each person can have an own one."""
        home = await self.sessions.fact(home_channel.fact_of(place.platform))
        own = home_channel.key_in(home) if home_channel.decode(place.platform, home) == place else None
        where = f"{place.chat}:{place.thread}" if place.thread else place.chat
        shared = (SessionKey(f"agent:main:{place.platform}:{kind}:{where}") for kind in _KINDS)
        return [*([own] if own is not None else []), *shared]

    async def progress(self, name: str) -> dict[str, Any]:
        found = await self.outbox.progress(f"{POST}{name}")
        match found:
            case OutboxMessage():
                return {"state": "waiting", "tries": found.tries, "problem": found.problem}
            case DeliveredMessage():
                state = {"state": "sent", "messages": list(found.messages), "sent_at": found.sent_at}
                return {**state, "repeated": found.repeated}
            case DeadLetter():
                return {"state": "failed", "problem": found.problem, "dead_letter": found.id}
        raise BadInputError(f"there is no post {name}", code="unknown_post")


def _which(platforms: Sequence[str]) -> BadInputError:
    return BadInputError(f"choose a platform with --platform: {' or '.join(platforms)}", code="unknown_platform")


def _unknown(platform: str, platforms: Sequence[str]) -> str:
    if not platforms:
        return "no chat platform is set up; run `hermes setup telegram` or `hermes setup slack`"
    from difflib import get_close_matches  # noqa: PLC0415 - only for mistakes

    near = get_close_matches(platform, platforms, n=1)
    known = f"did you mean {near[0]}?" if near else f"the configured ones are {_listed(platforms)}"
    return f"{platform} is not configured: {known}"


def _listed(platforms: Sequence[str]) -> str:
    return " and ".join(platforms)
