"""What a running daemon can be told: to drain before a stop, and to read its configuration again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loguru import logger

from hermes.actors.delivery.protocol import Chat, Drain
from hermes.actors.directory_protocol import AnnounceStopToAll
from hermes.actors.kernel.ref import ActorDeadError
from hermes.actors.process_notice import STOPPED
from hermes.actors.reset_rules import ResetRules
from hermes.actors.reset_scheduler import PolicyChanged
from hermes.app.directory_configuration import DirectoryConfiguration, directory_settings
from hermes.app.factories.agent import AgentParts, make_models, process_settings
from hermes.app.factories.chat import DELIVERY
from hermes.app.factories.preflight import preflight
from hermes.app.factories.resets import are_there_resets, reset_settings
from hermes.app.operations import EXIT_STORAGE, DaemonOperations, StopRequest
from hermes.app.reload import Reloaded, changes, with_values
from hermes.app.secret_files import digests, in_force, rewritten
from hermes.config.home import Home
from hermes.config.log import configure_logging
from hermes.config.settings import Config
from hermes.domain.errors import ConfigError, HermesError
from hermes.domain.listing import counted, some
from hermes.domain.session.protocol import AnnounceStop
from hermes.domain.types import InterruptionCause, Phase, Session
from hermes.ports.agent import Model
from hermes.services.processes import ProcessService
from hermes.services.sessions import SessionService
from hermes.supervision.root import Children
from hermes.system.crash_point import reach

if TYPE_CHECKING:
    from hermes.adapters.openai_api.server import ApiServer
    from hermes.services.home import HomeService

_LAST_WORDS_S = 1.0  # for what was answered at the end of the drain
_TICK_S = 0.01
_MARGIN_S = 1.0  # between our own end of a stop and that of whoever waits for it
_PROGRESS_S = 1.0  # between two looks at how a drain goes on


@dataclass(slots=True, kw_only=True)
class Daemon:
    """The running parts that a stop and a reload need."""

    home: Home
    config: Config
    environ: Mapping[str, str]
    operations: DaemonOperations
    desk: SessionService
    agent: AgentParts
    children: Children
    directory: DirectoryConfiguration
    rules: ResetRules
    api: ApiServer | None
    facts: dict[str, Any]
    processes: ProcessService
    secrets: dict[str, str] = field(default_factory=dict)  # digests of the files that hold secrets
    homes: HomeService | None = None  # of chat platforms, to be told of a stop
    reloading: asyncio.Lock = field(default_factory=asyncio.Lock)  # one after the other

    async def drain(self, request: StopRequest, put_off: Callable[[], None] = lambda: None) -> None:
        """Take no more work, mark what is in flight, then give it a while to finish and to be told.

        `put_off` is called when there is more time for all of it than there was.
        """
        self.operations.set_stopping(request)
        self.desk.close("the daemon is stopping")
        if self.api is not None:
            self.api.close_intake()
        if request.exit_code == EXIT_STORAGE:
            return
        reach("stop: intake closed")
        told: set[Chat] = set()
        deadline = asyncio.get_running_loop().time() + self.config.shutdown.drain_s
        with suppress(ActorDeadError, HermesError, TimeoutError):  # recovery finds the same work without the marks
            async with asyncio.timeout_at(deadline):
                told |= _chats(await self._mark(request))
                while self.desk.waiting:  # noqa: ASYNC110 - for the few that were on their way to disk
                    await asyncio.sleep(_TICK_S)
                told |= _chats(await self._mark(request))  # the turns that these began
        reach("stop: marked")
        if self.homes is not None and self.config.chat.restart_banner:
            with suppress(HermesError, TimeoutError):
                async with asyncio.timeout_at(deadline):
                    how = "restarting" if request.restart else "stopping"
                    text = f"Hermes is {how} ({request.reason})."
                    await self.homes.tell_all(f"stop:{self.facts['epoch']}", text, except_in=told)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline) as limit:
                await self._until_finished(request, limit, put_off)
        reach("stop: drained")
        with suppress(ActorDeadError, HermesError, TimeoutError):  # else it is said after the next start
            async with asyncio.timeout_at(max(deadline, asyncio.get_running_loop().time() + _LAST_WORDS_S)):
                await self._mark(request)  # each answers when its last answer is on disk and with delivery
                await self.children[DELIVERY].ask(Drain(), block=False)
        if not self.config.processes.keep_on_stop and (ended := await self.processes.end_all(STOPPED)):
            what = counted(ended, "background process was", "background processes were")
            logger.info("{} ended with the daemon (processes.keep_on_stop)", what)
        elif left := self.processes.running():
            what = counted(left, "background process runs", "background processes run")
            logger.info("{} on (processes.keep_on_stop); the next daemon finds what it left", what)
        if busy := self.agent.runner.busy:
            what = counted(len(busy), "session", "sessions")
            logger.warning("{} did not finish in time and will go on after the next start: {}", what, some(busy))

    async def _mark(self, request: StopRequest) -> list[Session]:
        cause = InterruptionCause.RESTART if request.restart else InterruptionCause.SHUTDOWN
        announced = AnnounceStopToAll(stop=AnnounceStop(reason=request.announced, cause=cause, who=request.who))
        sessions: list[Session] = []
        for mark in await self.children["directory"].ask(announced, block=False):
            with suppress(ActorDeadError, HermesError):  # one that cannot be marked keeps no other one from it
                sessions.append(await mark)
        return sessions

    async def _until_finished(
        self, request: StopRequest, limit: asyncio.Timeout, put_off: Callable[[], None]
    ) -> None:
        """Where a service manager is asked for it, the time begins anew as often as there is less work than ever.

        Each step of a turn comes to its end, too: one that goes on and on must not put off the stop for ever.
        """
        runner, shutdown = self.agent.runner, self.config.shutdown
        finished = asyncio.create_task(self._finished(request), name="until all turns are finished")
        left = runner.active
        try:
            while not (await asyncio.wait([finished], timeout=_PROGRESS_S))[0]:
                now = runner.active
                if now < left and self.operations.ask_for_time(shutdown.timeout_s + _MARGIN_S):
                    limit.reschedule(asyncio.get_running_loop().time() + shutdown.drain_s)
                    put_off()
                left = min(left, now)
        finally:
            finished.cancel()

    async def _finished(self, request: StopRequest) -> None:
        """Between two of its steps a turn has nothing in flight: only its session knows that it goes on."""
        runner = self.agent.runner
        while True:
            await runner.until_idle()
            with suppress(ActorDeadError, HermesError):  # between two lives of the directory: one more look
                await self._mark(request)  # what one hands over to its successor is seen by the second look
                running = [each for each in await self._mark(request) if each.phase is Phase.RUNNING]
                if not running and not runner.active:
                    return
            await asyncio.sleep(_TICK_S)

    async def reload(self) -> Reloaded:
        """Read the configuration again and apply what can change while the daemon runs. Raises ConfigError."""
        async with self.reloading:
            try:
                new = (await asyncio.to_thread(preflight, self.home, self.environ)).config
                secrets = await asyncio.to_thread(digests, self.home, new, self.environ)  # before they are used
                models = await asyncio.to_thread(make_models, new, self.environ)
            except ConfigError as error:
                logger.error("the configuration was not reloaded, the old one stays: {}", error)
                raise
            return self._apply(new, models, secrets)

    def _apply(self, new: Config, models: tuple[Model, ...], secrets: dict[str, str]) -> Reloaded:
        applied, later = Config.reloadable_changes(self.config, new)
        files = rewritten(self.secrets, secrets, dict.fromkeys((*applied, *later)))
        self.secrets = in_force(self.secrets, secrets)
        if any(name.startswith("model.") for name in (*applied, *files.applied)):
            self.agent.runner.set_models(models)
            self.facts["model"] = models[0].name
        self.agent.configure(new)
        if "log.level" in applied:
            configure_logging(new.log, self.home)
        if self.api is not None:
            self.api.set_cors_origins(new.api.cors_origins)
        self.desk.max_waiting = new.sessions.max_waiting
        self.processes.settings = process_settings(new)
        self.directory.set(directory_settings(new, take_up=True))
        self.rules.settings = reset_settings(new, self.environ)
        self.facts["resets"] = are_there_resets(new.session_reset)
        with suppress(ActorDeadError):  # between two lives: the next one looks for itself
            self.children["resets"].tell(PolicyChanged())
        came_of_it = Reloaded(
            applied=changes(self.config, new, applied), needs_restart=changes(self.config, new, later), files=files
        )
        # What needs a restart is not in force, and the next reload has to say so again.
        self.config = with_values(self.config, new, applied)
        logger.info("configuration reloaded: {}", ", ".join((*applied, *files.applied)) or "nothing changed")
        if later or files.needs_restart:
            logger.warning("these settings need a restart: {}", ", ".join((*later, *files.needs_restart)))
        return came_of_it


def _chats(marked: list[Session]) -> set[Chat]:
    """Those that are told of the stop, as a turn runs there."""
    places = [each.turn.place for each in marked if each.turn is not None and each.resume_reason]
    return {(place.platform, place.chat) for place in places if place is not None}
