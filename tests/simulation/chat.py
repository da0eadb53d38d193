"""A chat platform that outlives every daemon: it brings what people write until that is confirmed, and shows them
what it was told to, with delays, outages, limits, and sends of which nobody learns whether they arrived.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from typing import Any

from hermes.actors.delivery.attempt import REPEATED
from hermes.actors.delivery.preview import CURSOR
from hermes.adapters.chat.conversation_key import conversation_key
from hermes.domain.access.question import token_of
from hermes.domain.errors import DeliveryError
from hermes.domain.ids import InboundKey
from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.source import Place, Source
from hermes.ports.chat import Abilities, Inbound
from tests.simulation.daemon import SimulatedDaemon, role_of
from tests.simulation.outside import Outside
from tests.simulation.people import PAUSES_S, Town, Wish, have, some_wish
from tests.simulation.request import Request
from tests.support.judge import Crashed, Delivered, Erased, Happening, Sample, Sent, Uncertain

NAME = "toy"
ANSWER = re.compile(r"answer\d+ to (turn\d+)")
ALL_ABILITIES = (
    Abilities(),
    Abilities(edit=True, typing=True, show_every_s=0.3),
    Abilities(edit=True, find=True, show_every_s=0.3),
    Abilities(find=True),
)


class SimulatedPlatform:
    """Implements ports.Platform."""

    name = NAME

    def __init__(self, outside: Outside) -> None:
        self.abilities = outside.chance.choice(ALL_ABILITIES)
        self.shown: dict[str, tuple[str, str]] = {}  # message -> chat, text
        self._outside = outside
        self._found: dict[tuple[str, int], str] = {}  # obligation and part -> message
        self.buttons: list[tuple[str, tuple[str, ...]]] = []  # under questions: their token, and what they say

    async def ready(self, place: Place) -> None:
        """Always."""

    def parts(self, text: str) -> Sequence[str]:
        return [text]

    async def send(self, outgoing: OutboxMessage, text: str) -> str:
        try:
            return await self._send(outgoing, text)
        except asyncio.CancelledError:  # by a stop that did not wait for it
            self._outside.history.add(Uncertain(at=self._outside.time()))
            raise

    async def _send(self, outgoing: OutboxMessage, text: str) -> str:
        outside = self._outside
        await self._reach()
        message = outside.number("message")
        self.shown[message] = (outgoing.place.chat, text)
        self._found.setdefault((outgoing.id, len(outgoing.sent)), message)
        outside.note(f"shown {outgoing.place.chat} {message} {outgoing.id}")
        if token := token_of(outgoing):
            self.buttons.append((token, outgoing.choices))
        outside.moment("after a send")
        await asyncio.sleep(outside.chance.uniform(0.001, 0.1))
        if outside.happens(0.05):
            outside.history.add(Uncertain(at=outside.time()))
            raise DeliveryError("the answer to the send was lost", arrived_perhaps=True)
        return message

    async def send_file(self, outgoing: OutboxMessage, path: str, text: str) -> str:
        return await self.send(outgoing, path)

    async def edit(self, outgoing: OutboxMessage, message: str, text: str) -> None:
        await self._reach()
        self.shown[message] = (outgoing.place.chat, text)
        await asyncio.sleep(self._outside.chance.uniform(0.001, 0.1))

    async def find(self, outgoing: OutboxMessage, part: int) -> str | None:
        await self._reach()
        return self._found.get((outgoing.id, part))

    async def delete(self, outgoing: OutboxMessage, message: str) -> None:
        raise NotImplementedError

    async def show_typing(self, place: Place) -> None:
        await self._reach()

    async def show_waiting(self, place: Place, *, over: bool = False) -> None:
        await self._reach()

    async def _reach(self) -> None:
        outside = self._outside
        await asyncio.sleep(outside.chance.uniform(0.001, 0.1))
        if outside.happens(0.08):
            raise DeliveryError("it cannot be reached")
        if outside.happens(0.03):
            raise DeliveryError("too many messages", retry_after_s=outside.chance.uniform(1, 10))

    def happenings(self) -> Iterator[Happening]:
        """What people see in the end."""
        outside = self._outside
        outside.history.add(*[Uncertain(at=outside.now)] * outside.disk.unnoted)
        unfinished = 0
        for chat, text in self.shown.values():
            plain = text.removeprefix(REPEATED)
            if match := ANSWER.fullmatch(plain):
                yield Delivered(to=chat, turn=match[1], text=plain, marked=plain != text)
            unfinished += plain.endswith(CURSOR) or plain.startswith("⚙")
        cut_off = sum(len(outside.history.of(kind)) for kind in (Crashed, Uncertain, Erased))
        yield Sample(what="replies that were left half said", value=unfinished, limit=cut_off)
        yield Sample(what="what is owed and was not said", value=len(outside.disk.outbox()), limit=0)


class Chatter:
    """Somebody on the platform. What they write stays in its queue until the daemon has confirmed it, in order."""

    def __init__(self, town: Town, outside: Outside, number: int, platform: SimulatedPlatform) -> None:
        self._town = town
        self._outside = outside
        self._platform = platform
        self._chat = f"chat{number}"
        self._updates: list[Inbound] = []
        self._bringing = False

    @property
    def waiting(self) -> bool:
        return bool(self._updates)

    def act(self) -> None:
        outside = self._outside
        if not outside.faulty:
            return
        luck = outside.chance.random()
        if luck < 0.65:
            self._write()
        elif luck < 0.8 and self._platform.buttons:
            self._press()
        else:
            wish = some_wish(outside)
            self._town.ask(lambda daemon, _: self._have(wish, daemon), lambda *_: None)
        outside.later(outside.chance.choice(PAUSES_S) * outside.chance.random(), self.act)

    def _write(self) -> None:
        text = self._outside.number("said-")
        self._outside.history.add(Sent(inbound=text, at=self._outside.now))
        self._updates.append(self._inbound(text))
        self._bring()

    def _press(self) -> None:
        """Some button that was ever shown, to whomever: platforms tell no secret, but tokens may leak."""
        chance = self._outside.chance
        token, choices = chance.choice(self._platform.buttons[-5:])
        number = chance.randrange(len(choices))
        place = Place(platform=NAME, chat=self._chat)
        pressed = Inbound(
            id=InboundKey(f"{NAME}:{self._outside.number('pressed-')}"),
            place=place,
            user=self._chat,
            text=choices[number],
            answers=token,
            choice=number,
        )
        self._town.ask(lambda daemon, _: daemon.press(pressed), lambda *_: None)

    def _inbound(self, text: str) -> Inbound:
        place = Place(platform=NAME, chat=self._chat)
        return Inbound(id=InboundKey(f"{NAME}:{text}"), place=place, user=self._chat, text=text)

    async def _have(self, wish: Wish, daemon: SimulatedDaemon) -> None:
        here = self._inbound("")
        session = await daemon.desk.bound(conversation_key(here))
        if session is not None:
            source = Source(platform=NAME, user=self._chat, place=here.place, role=role_of(self._chat))
            await have(wish, daemon, session, source)

    def _bring(self) -> None:
        if self._updates and not self._bringing:
            self._bringing = True
            update = self._updates[0]
            self._town.ask(lambda daemon, _: daemon.take(update), self._on)

    def _on(self, request: Request, what: str, value: Any) -> None:
        self._bringing = False
        if what == "done" and not self._outside.happens(0.1):  # else the confirmation was lost: it comes again
            self._updates.pop(0)
            self._bring()
        else:
            self._outside.later(self._outside.chance.uniform(0.1, 3.0), self._bring)
