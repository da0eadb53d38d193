"""Performs the effects of the shutdown machine (`hermes.supervision.shutdown`) on the running parts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from loguru import logger

from hermes.actors.delivery.delivery_protocol import Drain
from hermes.actors.directory_protocol import AnnounceStopToAll
from hermes.actors.kernel.ref import ActorDeadError
from hermes.actors.process.process_notice import STOPPED
from hermes.agent.runner import AgentRunner
from hermes.app.actor_system import DELIVERY, DIRECTORY, ActorSystem
from hermes.app.operations import DaemonOperations
from hermes.config.settings import Config
from hermes.domain.cause.cause import InterruptionCause
from hermes.domain.errors import HermesError
from hermes.domain.session.protocol import AnnounceStop
from hermes.domain.session.state import Phase, Session
from hermes.domain.text.listing import counted, some
from hermes.supervision.root import ShutdownEffects
from hermes.supervision.shutdown import Action, Chats, ShutdownStage, StopBudget, Stopping, StopRequest
from hermes.supervision.watchdog import ShutdownWatchdog
from hermes.system.crash_point import reach

if TYPE_CHECKING:
    from hermes.adapters.openai_api.server import ApiServer

_POLL_S = 0.01
_MARGIN_S = 1.0  # between our own timeout and that of the service manager


@dataclass(slots=True, kw_only=True)
class DaemonShutdown(ShutdownEffects):
    config: Config  # a reload replaces it
    system: ActorSystem
    runner: AgentRunner
    operations: DaemonOperations
    close_servers: Callable[[], Awaitable[None]]
    close_workers: Callable[[], Awaitable[None]]
    write_clean_marker: Callable[[StopRequest], Awaitable[None]]
    api: ApiServer | None = None
    watchdog: ShutdownWatchdog | None = None  # None: inside another program, which has its own
    finished: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def budget(self) -> StopBudget:
        return StopBudget(drain_s=self.config.shutdown.drain_s, extensible=self.operations.has_service_manager)

    def active_work(self) -> int:
        return self.runner.active

    def abandon(self) -> None:
        """End the shutdown here. Whatever is open is closed on the way out of `running`."""
        if not self.finished.done():
            self.finished.set_result(None)

    def act(self, action: Action, request: StopRequest) -> None:
        match action:
            case Action.ARM_WATCHDOG:
                if self.watchdog is not None:
                    self.watchdog.arm()
            case Action.REPORT_STOPPING:
                reach("stop: asked")
                self.operations.set_stopping(request)
            case Action.CLOSE_INTAKE:
                self.system.sessions.close("the daemon is stopping")
                if self.api is not None:
                    self.api.close_intake()
                reach("stop: intake closed")
            case Action.EXTEND_TIMEOUT:
                self.operations.extend_timeout(self.config.shutdown.timeout_s + _MARGIN_S)
            case Action.FINISH:
                self.abandon()
            case _:
                assert_never(action)

    async def run(self, stage: ShutdownStage, state: Stopping) -> Chats:
        match stage:
            case ShutdownStage.MARK_SESSIONS | ShutdownStage.MARK_NEW_TURNS:
                return _chats(await self._mark_sessions(state.request))
            case ShutdownStage.AWAIT_INTAKE:
                while self.system.sessions.waiting:  # noqa: ASYNC110 - a few messages that are on their way to disk
                    await asyncio.sleep(_POLL_S)
            case ShutdownStage.NOTIFY_HOMES:
                reach("stop: marked")
                await self._notify_homes(state)
            case ShutdownStage.DRAIN:
                await self._until_turns_finished(state.request)
            case ShutdownStage.LAST_WORDS:
                reach("stop: drained")
                # Each session answers when its last answer is stored and handed to delivery.
                await self._mark_sessions(state.request)
                await self.system.children[DELIVERY].ask(Drain(), block=False)
            case ShutdownStage.END_PROCESSES:
                await self._end_processes()
                self._log_unfinished()
            case ShutdownStage.CLOSE_SERVERS:
                await self.close_servers()
                reach("stop: servers closed")
            case ShutdownStage.STOP_CHILDREN:
                pass  # by the root
            case ShutdownStage.CLOSE_WORKERS:
                await self.system.until_actors_ended(left=1)  # the root
                reach("stop: actors gone")
                await self.close_workers()
            case ShutdownStage.WRITE_CLEAN_MARKER:
                await self.write_clean_marker(state.request)
            case _:
                assert_never(stage)
        return frozenset()

    async def _mark_sessions(self, request: StopRequest) -> list[Session]:
        """Have every session flush and store that it must resume. A session that fails does not stop the others."""
        cause = InterruptionCause.RESTART if request.restart else InterruptionCause.SHUTDOWN
        announced = AnnounceStopToAll(stop=AnnounceStop(reason=request.announced, cause=cause, who=request.who))
        sessions: list[Session] = []
        for mark in await self.system.children[DIRECTORY].ask(announced, block=False):
            with suppress(ActorDeadError, HermesError):
                sessions.append(await mark)
        return sessions

    async def _notify_homes(self, state: Stopping) -> None:
        if not self.config.chat.restart_banner:
            return
        how = "restarting" if state.request.restart else "stopping"
        text = f"Hermes is {how} ({state.request.reason})."
        await self.system.chat.homes.tell_all(f"stop:{self.system.ports.journal.epoch}", text, except_in=state.chats)

    async def _until_turns_finished(self, request: StopRequest) -> None:
        """Ask the sessions, not only the runner: a turn has nothing in flight between two of its steps."""
        while True:
            await self.runner.until_idle()
            with suppress(ActorDeadError, HermesError):  # the directory is restarting: try again
                await self._mark_sessions(request)  # may hand over to a successor, which the second call reaches
                sessions = await self._mark_sessions(request)
                if not self.runner.active and all(each.phase is not Phase.RUNNING for each in sessions):
                    return
            await asyncio.sleep(_POLL_S)

    async def _end_processes(self) -> None:
        if not self.config.processes.keep_on_stop and (ended := await self.system.processes.end_all(STOPPED)):
            what = counted(ended, "background process was", "background processes were")
            logger.info("{} ended with the daemon (processes.keep_on_stop)", what)
        elif left := self.system.processes.running():
            what = counted(left, "background process keeps", "background processes keep")
            logger.info("{} running (processes.keep_on_stop); the next daemon adopts them", what)

    def _log_unfinished(self) -> None:
        if busy := self.runner.busy:
            what = counted(len(busy), "session", "sessions")
            logger.warning("{} did not finish in time and will go on after the next start: {}", what, some(busy))


def _chats(marked: list[Session]) -> Chats:
    """Return the chats in which a running turn announces the stop."""
    places = [each.turn.place for each in marked if each.turn is not None and each.resume_reason]
    return frozenset((place.platform, place.chat) for place in places if place is not None)
