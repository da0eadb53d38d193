"""Looks around now and then for what the home channels should know: dead letters, a platform that stays away,
processes that ended where nobody would hear of it. What it tells has an id: looking again tells nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from loguru import logger

from hermes.adapters.chat.services import POST
from hermes.domain.errors import HermesError, UnknownSessionError
from hermes.domain.read.views import ActorView
from hermes.domain.types import DeadLetter, ProcessView
from hermes.ports.given import Clock
from hermes.ports.processes import ProcessList
from hermes.ports.sessions import Sessions
from hermes.services.home import OURS, HomeService

EVERY_S = 10.0
TROUBLE_AFTER_S = 300.0
_TERMINAL_WAITS_S = 60.0  # `hermes send`, for the delivery
_STALE_S = 86_400.0  # what is older is no news
_WELL = ("running", "connecting")
_IN_PART = "impaired"  # the rest of it works, and may be told


class HomeWatch:
    def __init__(
        self,
        homes: HomeService,
        *,
        sessions: Sessions,
        processes: ProcessList,
        actors: Callable[[], Sequence[ActorView]],
        clock: Clock,
        every_s: float = EVERY_S,
        trouble_after_s: float = TROUBLE_AFTER_S,
    ) -> None:
        self._homes = homes
        self._sessions = sessions
        self._processes = processes
        self._actors = actors
        self._clock = clock
        self._every_s = every_s
        self._trouble_after_s = trouble_after_s
        self._told: set[str] = set()  # what need not be looked up again
        self._down_since: dict[str, float] = {}

    async def run(self) -> None:
        while True:
            try:
                await self.look()
            except HermesError as error:
                logger.warning("the home channels could not be told what is new: {}", error)
            await asyncio.sleep(self._every_s)

    async def look(self) -> None:
        if not await self._homes.places():
            return
        now = self._clock()
        for letter in await self._sessions.dead_letters():
            if now - letter.at < _STALE_S and not _is_known(letter):
                await self._tell(f"dead:{letter.id}", about_letter(letter), about=letter.source.platform)
        for view in self._processes.views():
            if view.notify and view.ended_at is not None and now - view.ended_at < _STALE_S:
                await self._tell_of_process(view)
        for actor in self._actors():
            if actor.kind == "adapter":
                await self._look_after(actor, now)

    async def _tell(self, name: str, text: str, *, about: str = "", elsewhere: bool = False) -> None:
        if name not in self._told and await self._homes.tell(name, text, about=about, elsewhere=elsewhere):
            self._told.add(name)

    async def _tell_of_process(self, view: ProcessView) -> None:
        name = f"process:{view.id}"
        if name in self._told:
            return
        try:
            session = (await self._sessions.view(view.session)).session
        except UnknownSessionError:  # deleted, and its processes soon after it
            return
        if session.place is not None:  # its conversation has a chat, and is told there
            self._told.add(name)
            return
        await self._tell(name, f"{self._processes.explain(view)}\nIt belongs to session {session.id}.")

    async def _look_after(self, actor: ActorView, now: float) -> None:
        if actor.state in _WELL:
            self._down_since.pop(actor.name, None)
            return
        since = self._down_since.setdefault(actor.name, now)
        if now - since >= self._trouble_after_s:
            text = f"{actor.name} has been {actor.state} for a while: {actor.last_error or 'it does not answer'}"
            await self._tell(
                f"trouble:{actor.name}:{since:.0f}", text, about=actor.name, elsewhere=actor.state != _IN_PART
            )


def _is_known(letter: DeadLetter) -> bool:
    """It was about a home itself, where one letter would make the next, or a terminal waited for it and was told."""
    outgoing = letter.undelivered
    waited_for = outgoing is not None and letter.id.startswith(POST) and letter.at - outgoing.at < _TERMINAL_WAITS_S
    return waited_for or letter.id.startswith(OURS)


def about_letter(letter: DeadLetter) -> str:
    if letter.undelivered is not None:
        where = f"chat {letter.undelivered.place.chat} on {letter.undelivered.place.platform}"
        what = f"A message for {where} cannot be delivered: {letter.problem}"
    else:
        what = f"A message was set aside in session {letter.session}: {letter.problem}"
    return f"{what}\n`hermes dead-letters replay {letter.id}` tries it again."
