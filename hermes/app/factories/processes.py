"""Factory of background processes: host, registry, supervisor and service."""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from loguru import logger

from hermes.actors.journal import ActorJournal
from hermes.actors.kernel.ref import ActorDeadError, ActorRef
from hermes.actors.process_registry import ProcessRegistry
from hermes.actors.process_services import Announcement, HostThreads, NoticeLimit, NoticeSender, ProcessServices
from hermes.actors.process_supervisor import ProcessSupervisor
from hermes.app.factories.agent import process_settings
from hermes.config.home import Home
from hermes.config.log import redacted
from hermes.config.settings import Config
from hermes.domain.errors import HermesError
from hermes.domain.events import Notice
from hermes.domain.ids import TurnId
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.process.process_record import Heartbeat
from hermes.ports.hub import Hub
from hermes.processes.host import LinuxProcessHost
from hermes.services.outbox import OutboxService
from hermes.services.processes import ProcessService
from hermes.services.sessions import SessionService
from hermes.supervision.policy import RestartIntensity
from hermes.supervision.root import Children
from hermes.system.clock import wall

NAME = "processes"  # of the supervisor, among the children of the root


@dataclasses.dataclass(slots=True, kw_only=True)
class ProcessParts:
    front: ProcessService
    start_desk: Callable[[ActorRef[Any]], ActorRef[Any]]  # takes the owner


@asynccontextmanager
async def open_processes(
    config: Config,
    home: Home,
    *,
    children: Children,
    sessions: SessionService,
    journal: ActorJournal,
    hub: Hub,
    deliver: Callable[[Sequence[OutboxMessage]], None],
    new_turn: Callable[[], TurnId],
) -> AsyncIterator[ProcessParts]:
    host, threads, board = LinuxProcessHost(home.data_dir / "processes"), HostThreads(), ProcessRegistry()
    front = ProcessService(
        supervisor=lambda: children[NAME],
        host=host,
        threads=threads,
        board=board,
        journal=journal,
        clock=wall,
        settings=process_settings(config),
    )
    courier = NoticeSender(sessions.submit, partial(announce, hub, journal, OutboxService(journal, deliver)))
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
        send_heartbeat=partial(_tell_directory, children),
        redact=redacted,
        publish=hub.publish,
    )
    start = partial(
        ProcessSupervisor.start, services, new_id=new_process_id, restart_policy=RestartIntensity(), name=NAME
    )
    try:
        yield ProcessParts(front=front, start_desk=lambda owner: start(owner=owner))
    finally:
        await courier.close()
        await threads.close()


def _tell_directory(children: Children, heartbeat: Heartbeat) -> None:
    with suppress(ActorDeadError):  # restarting: the next heartbeat comes in seconds
        children["directory"].tell(heartbeat)


async def announce(hub: Hub, journal: ActorJournal, outbox: OutboxService, said: Announcement) -> None:
    """Publish a notice, and enqueue it for the chat where the person wrote last."""
    hub.publish(Notice(session=said.session, text=said.text, turn=said.turn))
    head = await journal.fetch(lambda reader: reader.head(said.session))
    if head is None or head.place is None:
        return
    await outbox.enqueue(
        OutboxMessage(
            id=f"notice:{said.id}",
            kind=OutboxKind.NOTICE,
            place=head.place,
            text=said.text,
            at=wall(),
            session=said.session,
        )
    )


def from_thread(tell: Callable[[Announcement], Awaitable[None]]) -> Callable[[Announcement], None]:
    """Return a function that threads call to run `tell` on this event loop. It does not wait."""
    loop = asyncio.get_running_loop()

    async def announce_or_log(said: Announcement) -> None:
        try:
            await tell(said)
        except HermesError as error:
            logger.warning("session {}: could not announce {}: {}", said.session, said.id, error)

    def post(said: Announcement) -> None:
        asyncio.run_coroutine_threadsafe(announce_or_log(said), loop)

    return post


def new_process_id() -> str:
    return f"proc_{secrets.token_hex(6)}"
