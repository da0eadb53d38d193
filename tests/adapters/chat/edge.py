"""The edge of a chat platform over real sessions and commands: what people do there, and what they are told."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

from hermes.actors.directory_protocol import Configure
from hermes.adapters.chat.access import AccessControl
from hermes.adapters.chat.conversation_key import conversation_key
from hermes.adapters.chat.intake import SessionChatIntake
from hermes.adapters.chat.moved import MovedChats
from hermes.adapters.chat.services import ChatServices
from hermes.domain.ids import InboundKey, SessionId
from hermes.domain.media.reference import user_message
from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.source import Place
from hermes.domain.turn.message import EncodedMessage
from hermes.ports.chat import Abilities, Inbound
from hermes.services.home import HomeService
from hermes.services.outbox import OutboxService
from hermes.services.pairing import PairingService
from tests.services.commands.harness import CommandHarness, world
from tests.support.actor_system import DIRECTORY_SETTINGS

PEOPLE = ("ann", "bob")
MARKER = "0a"  # of every fence


class Edge:
    def __init__(self, here: CommandHarness, *, per_user: bool = True, **door: Any) -> None:
        self.here = here
        self.outgoing: list[OutboxMessage] = []
        self.aside = ""  # what whoever did the last thing was shown alone
        self.composed: list[Inbound] = []  # what became a message, or was to
        self.outbox = OutboxService(
            cast("Any", here.journal), self._deliver, clock=lambda: here.now, delivery=lambda: cast("Any", None)
        )
        self._updates = itertools.count(1)
        self._settings = door
        admins = frozenset(("toy", user) for user in door.get("admins", ()))
        limits = replace(DIRECTORY_SETTINGS.limits, admins=admins)
        here.directory.tell(Configure(settings=replace(DIRECTORY_SETTINGS, limits=limits)))
        self._per_user = per_user
        self.restart()

    def restart(self) -> None:
        """What is in memory is gone."""
        here = self.here

        def clock() -> float:
            return here.now

        self.pairing = PairingService(sessions=here.desk, outbox=self.outbox, clock=clock)
        self.homes = HomeService(["toy"], sessions=here.desk, outbox=self.outbox, clock=clock)
        self.office = ChatServices(
            platforms=["toy"],
            pairing=self.pairing,
            homes=self.homes,
            outbox=self.outbox,
            clock=clock,
            sessions=here.desk,
        )
        self.desk = SessionChatIntake(
            sessions=here.desk,
            outbox=self.outbox,
            commands=here.commands,
            access=AccessControl(pairing=self.pairing, **self._settings),
            moved=MovedChats("toy", here.desk),
            new_turn_id=here.new_turn_id,
            clock=clock,
            alive=lambda: None,
            per_user=self._per_user,
            abilities=Abilities(edit=True, buttons=True, splits_at=100),
            compose=self._compose,
            new_marker=lambda: MARKER,
        )

    async def _compose(self, inbound: Inbound, _marker: str) -> EncodedMessage:
        self.composed.append(inbound)
        return user_message(inbound.text)

    def _deliver(self, outgoing: Sequence[OutboxMessage]) -> None:
        self.outgoing.extend(outgoing)

    def owed_by_sessions(self) -> list[OutboxMessage]:
        """What sessions have to say, as it is on disk: their own messages are sent by nobody here."""
        return self.here.journal.engine.outbox()

    # ------------------------------------------------------------ people

    async def says(self, user: str, text: str, chat: str = "", **more: Any) -> Inbound:
        """In a private chat, unless one is named."""
        inbound = did(user, text, chat, number=next(self._updates), **more)
        self.aside = await self.desk.take(inbound)
        return inbound

    async def session(self, inbound: Inbound, **more: Any) -> SessionId | None:
        return await self.here.desk.bound(conversation_key(inbound, **more))

    def told(self, chat: str) -> list[str]:
        return [each.text for each in self.outgoing if each.place.chat == chat]


def did(user: str, text: str, chat: str = "", *, number: int = 1, thread: str = "", **more: Any) -> Inbound:
    place = Place(platform="toy", chat=chat or user, thread=thread, message=more.pop("message", f"m{number}"))
    kind = "thread" if thread else "group" if chat else "dm"
    return Inbound(id=InboundKey(f"toy:{number}"), place=place, user=user, text=text, chat_type=kind, **more)


@asynccontextmanager
async def edge(*, allowed: Collection[str] = PEOPLE, per_user: bool = True, **door: Any) -> AsyncIterator[Edge]:
    """`door` as the Door has it."""
    async with world() as here:
        yield Edge(here, allowed=allowed, per_user=per_user, **door)
