"""A chat platform in memory: it remembers what was shown to people, and misbehaves when told to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hermes.domain.errors import DeliveryError, UnsendableFileError
from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.source import Place
from hermes.ports.chat import Abilities

PLACE = Place(platform="toy", chat="c1")
EDITS = Abilities(edit=True, delete=True, typing=True, show_every_s=0.0, files=True)


class ToyPlatform:
    name = "toy"

    def __init__(self, abilities: Abilities = EDITS, *, longest: int = 1000) -> None:
        self.abilities = abilities
        self.longest = longest
        self.shown: dict[str, tuple[str, str]] = {}  # message -> chat, text
        self.markers: dict[tuple[str, int], str] = {}  # obligation and part -> message
        self.edits: list[tuple[str, str]] = []
        self.typed = 0
        self.problems: list[DeliveryError] = []  # for the next calls, one each
        self.gate: asyncio.Event | None = None  # not None: sends wait for it
        self.sending = 0
        self.said = 0
        self.deletions = 0
        self.stuck: asyncio.Event | None = None  # not None: deletions wait for it
        self.editing: asyncio.Event | None = None  # not None: edits wait for it
        self.edited = 0
        self.moved: dict[str, str] = {}  # chats that are called by another id now
        self.keeps = False  # what was said cannot be taken away
        self.busy: asyncio.Event | None = None  # not None: nobody's turn comes before it
        self.waiting = 0
        self.waits: set[str] = set()  # messages of people that carry the sign

    def parts(self, text: str) -> Sequence[str]:
        return [text[at : at + self.longest] for at in range(0, len(text), self.longest)] or [""]

    async def ready(self, place: Place) -> None:
        """At once, unless told otherwise."""
        self.waiting += 1
        if self.busy is not None:
            await self.busy.wait()

    async def send(self, outgoing: OutboxMessage, text: str) -> str:
        self.sending += 1
        self._find_chat(outgoing.place)
        if self.gate is not None:
            await self.gate.wait()
        problem = self.problems.pop(0) if self.problems else None
        if problem is not None and not problem.arrived_perhaps:
            raise problem
        self.said = max(self.said, len(self.shown)) + 1  # the id of one that was deleted is not used again
        message = f"m{self.said}"
        self.shown[message] = (outgoing.place.chat, text)
        self.markers[outgoing.id, len(outgoing.sent)] = message
        if problem is not None:
            raise problem
        return message

    async def send_file(self, outgoing: OutboxMessage, path: str, text: str) -> str:
        if "missing" in path:
            raise UnsendableFileError("it is not there any more")
        return await self.send(outgoing, f"{text}<{path}>")

    async def edit(self, outgoing: OutboxMessage, message: str, text: str) -> None:
        self.edited += 1
        if self.editing is not None:
            await self.editing.wait()
        self._find_chat(outgoing.place)
        if self.problems:
            raise self.problems.pop(0)
        if message not in self.shown:
            raise DeliveryError("there is no such message", gone=True)
        self.edits.append((message, text))
        self.shown[message] = (outgoing.place.chat, text)

    async def delete(self, outgoing: OutboxMessage, message: str) -> None:
        self.deletions += 1
        if self.stuck is not None:
            await self.stuck.wait()
        if self.keeps:
            raise DeliveryError("it may not be deleted", refused=True)
        if self.shown.pop(message, None) is None:
            raise DeliveryError("there is no such message", refused=True)

    async def find(self, outgoing: OutboxMessage, part: int) -> str | None:
        return self.markers.get((outgoing.id, part))

    async def show_typing(self, place: Place) -> None:
        self.typed += 1

    async def show_waiting(self, place: Place, *, over: bool = False) -> None:
        (self.waits.discard if over else self.waits.add)(place.message)

    def _find_chat(self, place: Place) -> None:
        if new := self.moved.get(place.chat):
            raise DeliveryError("it is a supergroup now", moved_to=new)

    def texts(self, chat: str = "c1") -> list[str]:
        return [text for where, text in self.shown.values() if where == chat]
