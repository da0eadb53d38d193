"""Operator's view of the whole daemon: status, backup, stop, reload; and its health check."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from loguru import logger

from hermes import __version__
from hermes.actors.adapter import AdapterActor
from hermes.actors.journal import ActorJournal
from hermes.actors.kernel.actor import live_actors
from hermes.actors.session.session import SessionActor
from hermes.app.host.loop_lag import LoopLag
from hermes.app.host.notify import Notifier
from hermes.app.reload import Reloaded
from hermes.config.platforms import PLATFORMS
from hermes.domain.errors import BadInputError, ConfigError, HermesError
from hermes.domain.ids import SessionId
from hermes.domain.read.live import LiveQuery, ranked
from hermes.domain.read.reader import StoreStats
from hermes.domain.read.views import ActorView
from hermes.domain.session.state import Phase
from hermes.ports.given import Clock
from hermes.ports.metrics import ChildFigures, DaemonFigures, EventFigures, JobFigures, LiveSample
from hermes.ports.operations import Operations
from hermes.ports.processes import Processes
from hermes.ports.storage import Engine, Transaction
from hermes.services.retention import SessionRetention
from hermes.services.search import SearchService
from hermes.services.turn_meter import TurnMeter
from hermes.supervision.root import Children
from hermes.supervision.shutdown import StopRequest
from hermes.supervision.stop_switch import StopSwitch
from hermes.system.random_id import new_session_id

PULSE_S = 2.0
STUCK_S = 20.0  # a health check that takes longer means that the store or the directory hangs


class McpView(Protocol):
    """State of the connections to MCP servers."""

    def views(self) -> list[ActorView]: ...
    def summary(self) -> Mapping[str, Any]: ...


class DaemonOperations(Operations):
    def __init__(
        self,
        *,
        engine: Engine,
        journal: ActorJournal,
        children: Children,
        verify: Callable[[], list[str]],
        notifier: Notifier,
        stop: StopSwitch,
        facts: Mapping[str, Any],
        turns: Callable[[], Mapping[str, int]],
        search: SearchService,
        retention: SessionRetention,
        turn_meter: TurnMeter,
        loop_lag: LoopLag,
        processes: Processes,
        child_figures: Callable[[], ChildFigures],
        learned: Callable[[], Mapping[tuple[str, str], int]] = dict,
        job_figures: Callable[[], Awaitable[JobFigures]],
        job_facts: Callable[[], Mapping[str, Any]],
        clock: Clock,
        check_config: Callable[[], object],
        model_health: Callable[[], Mapping[str, Any]] = dict,
        sandbox: Callable[[], Mapping[str, Any]] = dict,
        events: Callable[[], Mapping[str, Any]] = dict,
        event_figures: Callable[[], EventFigures] = EventFigures,
        mcp: McpView | None = None,
    ) -> None:
        self._events = events
        self._event_figures = event_figures
        self._mcp = mcp
        self._sandbox = sandbox
        self._check_config = check_config  # blocks; raises ConfigError
        self._engine = engine
        self._journal = journal
        self._children = children
        self._verify = verify
        self._notifier = notifier
        self._stop = stop
        self._facts = facts
        self._turns = turns
        self._model_health = model_health
        self._search = search
        self._retention = retention
        self._turn_meter = turn_meter
        self._loop_lag = loop_lag
        self._processes = processes
        self._child_figures = child_figures
        self._learned = learned
        self._job_figures = job_figures
        self._job_facts = job_facts
        self._clock = clock
        self._started_at = clock()
        self._not_ready = "starting"
        self.reloader: Callable[..., Awaitable[Reloaded]] | None = None  # None: embedded in another program
        self.memory_bytes = 0

    # ------------------------------------------------------------ for the admin socket and the API

    def actors(self) -> list[ActorView]:
        return [*(actor.statistics() for actor in live_actors()), *self._connections(), *self._parked()]

    def _connections(self) -> list[ActorView]:
        """Return the connections to MCP servers, which are supervised like actors."""
        return [] if self._mcp is None else self._mcp.views()

    def _parts(self) -> list[ActorView]:
        """Return all actors except sessions."""
        parts = (actor.statistics() for actor in live_actors() if not isinstance(actor, SessionActor))
        return [*parts, *self._connections(), *self._parked()]

    def _parked(self) -> list[ActorView]:
        return [
            ActorView(
                kind="parked",
                name=name,
                state="parked",
                mailbox=0,
                oldest_s=0.0,
                handled=0,
                slowest_s=0.0,
                age_s=0.0,
                last_error=reason,
            )
            for name, reason in self._children.parked.items()
        ]

    async def store_stats(self) -> StoreStats:
        return await self._journal.fetch(lambda reader: reader.stats())

    async def backup(self, target: Path) -> None:
        store = Path(self._facts["home"]) / "store"
        if not target.name or target.is_relative_to(store):
            raise BadInputError(f"a backup cannot be written to {target}; name a new directory", param="path")
        await asyncio.to_thread(self._engine.backup, target)
        logger.info("store: backup written")

    async def take_in(self, file: Path, *, trust: bool = False) -> Mapping[str, Any]:
        from hermes.upkeep.adoption import adopt  # noqa: PLC0415 - no start needs it
        from hermes.upkeep.portable import read_export  # noqa: PLC0415

        exported = await asyncio.to_thread(read_export, file)
        now = self._clock()
        adoption = await self._journal.fetch(
            partial(
                adopt,
                exported=exported,
                epoch=self._journal.epoch,
                new_id=partial(new_session_id, now),
                now=now,
                trust=trust,
            )
        )
        await self._commit(adoption.appends)
        logger.info("imported {}", ", ".join(adoption.ids.values()))
        return adoption.report()

    async def _commit(self, transaction: Transaction) -> None:
        done: asyncio.Future[HermesError | None] = asyncio.get_running_loop().create_future()
        self._journal.commit(transaction, lambda error: None if done.cancelled() else done.set_result(error))
        if (error := await done) is not None:
            raise error

    async def verify(self) -> list[str]:
        return await asyncio.to_thread(self._verify)

    async def prune(self, older_than_s: float, *, dry_run: bool = False) -> list[SessionId]:
        return await self._retention.prune(older_than_s, dry_run=dry_run)

    async def live(self, query: LiveQuery) -> LiveSample:
        actors = live_actors()
        found = [actor.live() for actor in actors if isinstance(actor, SessionActor)]
        listed, matching = ranked(found, query, self._clock())
        return LiveSample(
            figures=await self.figures(),
            phases=Counter(each.session.phase for each in found),
            sessions=listed,
            matching=matching,
            actors=self._parts(),
            platforms=self.platforms(),
            calling=self._turns().get("calling", 0),
            lag_s=tuple(self._loop_lag.recent_s),
            cpu_s=time.process_time(),
        )

    async def figures(self) -> DaemonFigures:
        stats = await self.store_stats()
        mailbox: Counter[str] = Counter()
        sessions = 0
        for actor in live_actors():
            mailbox[actor.kind] += len(actor.actor_inbox)
            sessions += isinstance(actor, SessionActor)
        return DaemonFigures(
            turns=self._turn_meter.figures(),
            turns_running=self._turns().get("in_flight", 0),
            sessions_stored=stats.sessions,
            sessions_live=sessions,
            sessions_waiting=_sessions_waiting(),
            mailbox=mailbox,
            loop_lag_s=self._loop_lag.lag_s,
            commits=stats.commits,
            transactions=stats.transactions,
            commits_took_s=stats.commits_took_s,
            waiting_writes=self._journal.waiting,
            outbox=stats.outbox,
            dead_letters=stats.dead_letters,
            store_bytes=stats.size_bytes,
            processes=sum(view.ended_at is None for view in self._processes.views()),
            memory_bytes=self.memory_bytes,
            uptime_s=self._clock() - self._started_at,
            ready=not self._not_ready,
            version=__version__,
            children=self._child_figures(),
            events=self._event_figures(),
            learned=self._learned(),
            jobs=await self._job_figures(),
            now=self._clock(),
        )

    def ready(self) -> str:
        return self._not_ready

    def version(self) -> str:
        return __version__

    def model(self) -> str:
        return str(self._facts["model"])

    def info(self) -> Mapping[str, Any]:
        return {
            "version": __version__,
            "pid": os.getpid(),
            "uptime_s": round(self._clock() - self._started_at, 1),
            "ready": not self._not_ready,
            "reason": self._not_ready,
            "restarting": self._stop.comes_back,
            "waiting_writes": self._journal.waiting,
            "turns": self._turns(),
            "model_health": self._model_health(),
            "sessions_waiting": _sessions_waiting(),
            "memory_bytes": self.memory_bytes,
            "platforms": self.platforms(),
            "sandbox": self._sandbox(),
            "mcp": {} if self._mcp is None else self._mcp.summary(),
            "search_index": self._index_progress(),
            **self._events(),
            **self._job_facts(),
            **self._facts,
        }

    def _index_progress(self) -> dict[str, Any] | None:
        """Return the progress of the search index; None before the first search."""
        index = self._search.progress()
        if index is None:
            return None
        return {"indexed": index.indexed, "total": index.total, "building": index.building}

    def platforms(self) -> list[dict[str, str]]:
        """Return the state of each chat platform."""
        views = [actor.statistics() for actor in live_actors() if actor.kind == AdapterActor.kind]
        alive = [{"name": view.name, "state": view.state, "problem": view.last_error} for view in views]
        parked = self._children.parked.items()
        return [
            *alive,
            *({"name": name, "state": "parked", "problem": why} for name, why in parked if name in PLATFORMS),
        ]

    def request_stop(self, reason: str) -> None:
        self._stop.request(reason)

    async def request_restart(self, reason: str, who: str = "") -> None:
        """Restart. Raises BadInputError, and changes nothing, when the new configuration is invalid."""
        try:
            await asyncio.to_thread(self._check_config)
        except ConfigError as error:
            raise BadInputError(
                f"the daemon was not restarted: it could not start with this configuration. {error}"
                f"{_started_without(error)}",
                code="bad_configuration",
            ) from error
        self._stop.request(reason, restart=True, who=who)

    async def reload(self, *, dry_run: bool = False) -> Mapping[str, Any]:
        """Reload the configuration. Raises BadInputError, and keeps the old one, when it is invalid.

        A dry run changes nothing and returns what a reload would change.
        """
        if self.reloader is None:
            raise BadInputError("this daemon runs inside another program, `hermes chat` say, and reloads nothing")
        try:
            reloaded = await self.reloader(dry_run=dry_run)
        except ConfigError as error:
            raise BadInputError(
                f"the configuration was not reloaded, the old one stays: {error}{_started_without(error)}",
                code="bad_configuration",
            ) from error
        return {
            "applied": reloaded.applied,
            "needs_restart": reloaded.needs_restart,
            "files_applied": reloaded.files.applied,
            "files_need_restart": reloaded.files.needs_restart,
            "pid": os.getpid(),
        }

    # ------------------------------------------------------------ for the composition root

    def set_ready(self) -> None:
        self._not_ready = ""
        self._notifier.ready()

    def set_stopping(self, request: StopRequest) -> None:
        self._not_ready = f"stopping: {request.reason}"
        if request.restart:
            self._notifier.reloading()
        else:
            self._notifier.stopping()

    @property
    def has_service_manager(self) -> bool:
        return bool(self._notifier.address)

    def extend_timeout(self, seconds: float) -> None:
        self._notifier.extend_timeout(seconds)

    async def pulse(self, round_trip: Callable[[], Awaitable[str]]) -> None:
        """Check health until cancelled: a round trip through store and directory, then a watchdog message."""
        loop = asyncio.get_running_loop()
        interval_s = min(PULSE_S, (self._notifier.watchdog_interval_s or 2 * PULSE_S) / 2)
        while True:
            began = loop.time()
            try:
                self.memory_bytes = await asyncio.to_thread(private_bytes)
                async with asyncio.timeout(STUCK_S):
                    problem = await round_trip()
                self._set_health(problem)
                self._notifier.watchdog()
            # Outermost loop of a task that must not end: it reports every failure.
            except Exception as error:  # noqa: BLE001
                self._set_health(f"the store or the directory does not answer: {error!r}")
            await asyncio.sleep(max(0.0, interval_s - (loop.time() - began)))

    def _set_health(self, problem: str) -> None:
        if self._stop or problem == self._not_ready:
            return
        if problem:
            logger.error("not ready: {}", problem)
        else:
            logger.info("ready again")
        self._not_ready = problem


def _started_without(error: ConfigError) -> str:
    """Explain which environment lacks a variable: people set it in their own shell."""
    if not error.missing_variables:
        return ""
    names = ", ".join(error.missing_variables)
    return (
        f". The daemon (pid {os.getpid()}) was started without {names}, and a restart keeps its environment: "
        "stop it and start it where the variable is set"
    )


def _sessions_waiting() -> int:
    """Count sessions that wait for a person. They are always in memory."""
    sessions = (actor for actor in live_actors() if isinstance(actor, SessionActor))
    return sum(session.phase is Phase.WAITING for session in sessions)


def private_bytes() -> int:
    """Return the resident memory of this process without shared pages, which are mostly the mapped store."""
    try:
        _, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text("ascii").split())
    except FileNotFoundError:  # not Linux: the standard library has only the peak
        import resource  # noqa: PLC0415 - not everywhere

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
