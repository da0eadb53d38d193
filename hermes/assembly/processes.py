"""The parts of background processes, put together: the machine, the board, the desk's actor and the front."""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from loguru import logger
from pykka import ActorRef

from hermes.actors.front_desk import FrontDesk
from hermes.actors.journal import ActorJournal
from hermes.actors.outgoing import ObligationDesk
from hermes.actors.process_board import ProcessBoard
from hermes.actors.process_desk import ProcessDesk
from hermes.actors.process_front import ProcessFront
from hermes.actors.process_services import Announcement, Courier, HostThreads, NoticeLimit, ProcessServices
from hermes.assembly.agent import process_settings
from hermes.errors import HermesError
from hermes.events import Notice
from hermes.home import Home
from hermes.log import redacted
from hermes.ports.hub import Hub
from hermes.processes.host import ProcessHost
from hermes.settings import Config
from hermes.supervision.policy import RestartIntensity
from hermes.supervision.root import Children
from hermes.types import Obligation, Owed, TurnId
from hermes.wall_clock import wall

NAME = "processes"  # of the desk, among the root's children


@dataclasses.dataclass(slots=True, kw_only=True)
class ProcessParts:
    front: ProcessFront
    start_desk: Callable[[ActorRef[Any]], ActorRef[Any]]  # takes the owner


@asynccontextmanager
async def open_processes(
    config: Config,
    home: Home,
    *,
    children: Children,
    sessions: FrontDesk,
    journal: ActorJournal,
    hub: Hub,
    deliver: Callable[[Sequence[Obligation]], None],
    new_turn: Callable[[], TurnId],
) -> AsyncIterator[ProcessParts]:
    host, threads, board = ProcessHost(home.data_dir / "processes"), HostThreads(), ProcessBoard()
    front = ProcessFront(
        desk=lambda: children[NAME],
        host=host,
        threads=threads,
        board=board,
        journal=journal,
        clock=wall,
        settings=process_settings(config),
    )
    courier = Courier(sessions.submit, partial(announce, hub, journal, ObligationDesk(journal, deliver)))
    services = ProcessServices(
        host=host,
        threads=threads,
        courier=courier,
        board=board,
        journal=journal,
        clock=wall,
        notices=NoticeLimit(),
        settings=lambda: front.settings,
        new_turn=new_turn,
        redact=redacted,
        publish=hub.publish,
    )
    start = partial(ProcessDesk.start, services, new_id=new_process_id, restart_policy=RestartIntensity(), name=NAME)
    try:
        yield ProcessParts(front=front, start_desk=lambda owner: start(owner=owner))
    finally:
        await courier.close()
        await threads.close()


async def announce(hub: Hub, journal: ActorJournal, outgoing: ObligationDesk, said: Announcement) -> None:
    """To whoever watches, and where the person wrote last."""
    hub.publish(Notice(session=said.session, text=said.text, turn=said.turn))
    head = await journal.fetch(lambda reader: reader.head(said.session))
    if head is None or head.place is None:
        return
    await outgoing.oblige(
        Obligation(
            id=f"notice:{said.id}",
            kind=Owed.NOTICE,
            place=head.place,
            text=said.text,
            at=wall(),
            session=said.session,
        )
    )


def from_thread(tell: Callable[[Announcement], Awaitable[None]]) -> Callable[[Announcement], None]:
    """Return a function for threads that has it told on this event loop. It does not wait."""
    loop = asyncio.get_running_loop()

    async def told(said: Announcement) -> None:
        try:
            await tell(said)
        except HermesError as error:
            logger.warning("session {}: could not be told {}: {}", said.session, said.id, error)

    def post(said: Announcement) -> None:
        asyncio.run_coroutine_threadsafe(told(said), loop)

    return post


def new_process_id() -> str:
    return f"proc_{secrets.token_hex(6)}"
