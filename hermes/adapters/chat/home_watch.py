"""Watch that sends news to the home channels: dead letters, platforms that are down, and ended processes whose
conversation has no chat. Each notice has an id, so it is sent once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from loguru import logger

from hermes.adapters.chat.services import POST
from hermes.domain.errors import HermesError, UnknownSessionError
from hermes.domain.outbox_message import DeadLetter
from hermes.domain.process.process_record import ProcessView
from hermes.domain.read.views import ActorView
from hermes.ports.given import Clock
from hermes.ports.processes import ProcessList
from hermes.ports.sessions import Sessions
from hermes.services.home import OURS, HomeService

EVERY_S = 10.0
TROUBLE_AFTER_S = 300.0
_TERMINAL_WAITS_S = 60.0  # `hermes send` waits this long for the delivery
_STALE_S = 86_400.0  # older events are not reported
_HEALTHY = ("running", "connecting")
_IMPAIRED = "impaired"  # the platform still delivers


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
        self._sent: set[str] = set()  # notices that were sent
        self._down_since: dict[str, float] = {}

    async def run(self) -> None:
        while True:
            try:
                await self.check()
            except HermesError as error:
                logger.warning("home channels: could not enqueue notices: {}", error)
            await asyncio.sleep(self._every_s)

    async def check(self) -> None:
        if not await self._homes.places():
            return
        now = self._clock()
        for letter in await self._sessions.dead_letters():
            if now - letter.at < _STALE_S and not _was_reported(letter):
                await self._notify(f"dead:{letter.id}", about_letter(letter), about=letter.source.platform)
        for view in self._processes.views():
            if view.notify and view.ended_at is not None and now - view.ended_at < _STALE_S:
                await self._report_process(view)
        for actor in self._actors():
            if actor.kind == "adapter":
                await self._check_platform(actor, now)

    async def _notify(self, name: str, text: str, *, about: str = "", elsewhere: bool = False) -> None:
        if name not in self._sent and await self._homes.tell(name, text, about=about, elsewhere=elsewhere):
            self._sent.add(name)

    async def _report_process(self, view: ProcessView) -> None:
        name = f"process:{view.id}"
        if name in self._sent:
            return
        try:
            session = (await self._sessions.view(view.session)).session
        except UnknownSessionError:  # deleted; its processes will be, too
            return
        if session.place is not None:  # reported in that chat
            self._sent.add(name)
            return
        await self._notify(name, f"{self._processes.explain(view)}\nIt belongs to session {session.id}.")

    async def _check_platform(self, actor: ActorView, now: float) -> None:
        if actor.state in _HEALTHY:
            self._down_since.pop(actor.name, None)
            return
        since = self._down_since.setdefault(actor.name, now)
        if now - since >= self._trouble_after_s:
            text = f"{actor.name} is {actor.state}: {actor.last_error or 'no answer'}"
            await self._notify(
                f"trouble:{actor.name}:{since:.0f}", text, about=actor.name, elsewhere=actor.state != _IMPAIRED
            )


def _was_reported(letter: DeadLetter) -> bool:
    """Return True for a notice to a home channel, to avoid a loop, or if a terminal has shown the failure."""
    outgoing = letter.undelivered
    waited_for = outgoing is not None and letter.id.startswith(POST) and letter.at - outgoing.at < _TERMINAL_WAITS_S
    return waited_for or letter.id.startswith(OURS)


def about_letter(letter: DeadLetter) -> str:
    if letter.undelivered is not None:
        where = f"chat {letter.undelivered.place.chat} on {letter.undelivered.place.platform}"
        what = f"A message to {where} could not be delivered: {letter.problem}"
    else:
        what = f"A message of session {letter.session} became a dead letter: {letter.problem}"
    return f"{what}\n`hermes dead-letters replay {letter.id}` retries it."
