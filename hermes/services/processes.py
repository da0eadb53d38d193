"""Background process service: one process list for tools, commands and adapters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any, TypeVar, cast

from loguru import logger

from hermes.actors.kernel.ref import ActorDeadError, ActorRef
from hermes.actors.process.process_registry import ProcessRegistry
from hermes.actors.process.process_services import HostThreads, ProcessSettings
from hermes.actors.process.process_supervisor import StartProcess
from hermes.domain.errors import BadInputError, StoppingError, UnknownSessionError
from hermes.domain.ids import SessionId
from hermes.domain.process.process import Chunk, Handle
from hermes.domain.process.process_record import Heartbeat, ProcessView
from hermes.domain.process.process_state import ProcessRow
from hermes.domain.process.staleness import StalenessSettings, blocking, explain
from hermes.domain.read.lineage import find_lineage
from hermes.domain.read.reader import Reader
from hermes.domain.session.state import Session, root_of
from hermes.ports.given import Clock
from hermes.ports.processes import (
    BackgroundProcesses,
    HeartbeatReceiver,
    NetworkedProcesses,
    ProcessHost,
    ProcessOrder,
)
from hermes.ports.storage import Journal

T = TypeVar("T")
KILL_GRACE_S = 2.0
_ENDED_WITHIN_S = 5.0  # after a kill: grace period plus time for the shim
_FRESH_S = 30.0  # minimum
_FILLED_WITHIN_S = 10.0


class ProcessService(BackgroundProcesses, NetworkedProcesses, HeartbeatReceiver):
    def __init__(
        self,
        *,
        supervisor: Callable[[], ActorRef[Any]],
        host: ProcessHost,
        threads: HostThreads,
        board: ProcessRegistry,
        journal: Journal,
        clock: Clock,
        settings: ProcessSettings,
    ) -> None:
        self._supervisor = supervisor
        self._host = host
        self._threads = threads
        self._registry = board
        self._journal = journal
        self._clock = clock
        self.settings = settings

    # ------------------------------------------------------------ process list

    def views(self, root: SessionId | None = None) -> tuple[ProcessView, ...]:
        return self._registry.views(lambda row: root in (None, row.record.root))

    def receive(self, heartbeat: Heartbeat) -> None:
        self._registry.receive(heartbeat)

    def running(self) -> int:
        return self._registry.running()

    async def listed(self, session: SessionId) -> tuple[ProcessView, ...]:
        lineage = await self._journal.fetch(lambda reader: _lineage(reader, session))
        return self._registry.views(lambda row: row.record.session in lineage or row.record.root in lineage)

    def staleness(self) -> StalenessSettings:
        return staleness_of(self.settings)

    def blocks(self, view: ProcessView) -> str:
        return blocking(view, self.staleness(), self._clock())

    def explain(self, view: ProcessView) -> str:
        return explain(view, self.staleness(), self._clock())

    # ------------------------------------------------------------ one process

    async def start(self, order: ProcessOrder) -> ProcessView:
        head = await self._journal.fetch(lambda reader: _head(reader, order.session))
        try:
            answer = await self._supervisor().ask(
                StartProcess(order=order, session=head, root=root_of(head)), block=False
            )
        except ActorDeadError as error:
            raise StoppingError("the process supervisor is restarting; no process was started, try again") from error
        return cast("ProcessView", answer)

    async def output(self, process: str, offset: int, limit: int) -> Chunk:
        return await self._with_handle(process, lambda handle: self._host.output(handle, offset, limit))

    async def tail(self, process: str, limit: int) -> Chunk:
        return await self._with_handle(process, lambda handle: self._host.tail(handle, limit))

    async def write(self, process: str, data: bytes) -> int:
        self._require_running(process)
        try:
            return await self._with_handle(process, lambda handle: self._host.write(handle, data))
        except BrokenPipeError as error:
            raise BadInputError(f"standard input of process {process} is closed", code="input_closed") from error
        except OSError as error:
            problem = error.strerror or str(error)
            raise BadInputError(f"could not write to process {process}: {problem}", code="not_sent") from error

    def typed(self, process: str) -> str:
        return self._host.typed(process).decode("utf-8", "replace")

    async def close_input(self, process: str) -> None:
        self._require_running(process)
        await self._with_handle(process, self._host.close_input)

    async def wait(self, process: str, timeout_s: float) -> ProcessView:
        with self._registry.hearing(process):
            return await self._until_ended(process, timeout_s)

    async def _until_ended(self, process: str, timeout_s: float) -> ProcessView:
        self._row(process)
        ended = self._registry.ended(process)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await ended
        finally:
            self._registry.give_up(process, ended)
        self._row(process)
        return self._registry.view(process)

    async def kill(self, process: str, why: str, *, heard: bool = False) -> ProcessView:
        self._require_running(process)
        with self._registry.hearing(process) if heard else nullcontext():
            await self._with_handle(process, lambda handle: self._host.kill(handle, KILL_GRACE_S, why))
            return await self._until_ended(process, _ENDED_WITHIN_S)

    async def end(self, process: str, why: str) -> None:
        """Kill the process if it still runs."""
        await self.until_filled()
        try:
            await self.kill(process, why)
        except BadInputError as error:  # ended or lost: reported elsewhere
            logger.info("process {}: nothing to kill: {}", process, error)

    # ------------------------------------------------------------ all processes

    async def until_filled(self) -> None:
        """Wait until processes from before this boot are found, with a timeout in case the store fails."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FILLED_WITHIN_S):
                await self._registry.filled.wait()

    async def networked(self) -> tuple[Handle, ...]:
        running = [(row.record.id, row.handle) for row in self._registry if row.runs]

        def find() -> tuple[Handle, ...]:
            found = (handle or self._host.find(process) for process, handle in running)
            return tuple(handle for handle in found if isinstance(handle, Handle) and handle.network)

        return await self._threads.call(find)

    async def end_all(self, why: str) -> int:
        """Kill all running processes. Returns their number."""
        running = [row.record.id for row in self._registry if row.runs]
        await asyncio.gather(*(self.end(process, why) for process in running))
        return len(running)

    # ------------------------------------------------------------ lookup

    def _row(self, process: str) -> ProcessRow:
        row = self._registry.get(process)
        if row is None:
            raise BadInputError(f"there is no background process {process}", code="unknown_process")
        return row

    def _require_running(self, process: str) -> None:
        if not self._row(process).runs:
            raise BadInputError(f"process {process} has ended already", code="process_ended")

    async def _with_handle(self, process: str, call: Callable[[Handle], T]) -> T:
        row = self._row(process)

        def run() -> T:
            handle = row.handle or self._host.find(process)
            if not isinstance(handle, Handle):
                raise BadInputError(f"process {process} is lost: {handle.reason}", code="process_lost")
            return call(handle)

        return await self._threads.call(run)


def _head(reader: Reader, session: SessionId) -> Session:
    head = reader.head(session)
    if head is None:
        raise UnknownSessionError(f"there is no session {session}")
    return head


def _lineage(reader: Reader, session: SessionId) -> frozenset[SessionId]:
    head = _head(reader, session)
    return frozenset((*find_lineage(reader, head), root_of(head)))


def staleness_of(settings: ProcessSettings) -> StalenessSettings:
    return StalenessSettings(
        heartbeat_fresh_s=max(_FRESH_S, 3 * settings.heartbeat_s),
        stale_after_s=settings.stale_after_s,
        max_age_s=settings.max_age_s,
    )
