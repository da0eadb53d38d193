"""A small world for background processes: real actors and threads, a machine that obeys, a virtual clock.

`World.restart` is what a kill of the daemon leaves: the store and the machine, and nothing else.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, get_args

from hermes.actors.kernel.actor import LoopActor, live_actors
from hermes.actors.kernel.ref import ActorRef
from hermes.actors.process.process_registry import ProcessRegistry
from hermes.actors.process.process_services import HostThreads, ProcessSettings
from hermes.actors.session.session_mail import Post
from hermes.app.actor_system import DELIVERY, DIRECTORY, PROCESSES, RESETS, assemble
from hermes.domain.errors import HermesError
from hermes.domain.events import Event, Notice
from hermes.domain.ids import SessionId
from hermes.domain.process.process import (
    Chunk,
    EndReason,
    FailedStart,
    Handle,
    Lost,
    ProcessEnd,
    ProcessSample,
    ProcessSpec,
)
from hermes.domain.process.process_record import Heartbeat, ProcessRecord, ProcessView
from hermes.domain.turn.submission import Receipt, Submission
from hermes.ports.processes import ProcessOrder
from hermes.services.event_hub import EventHub
from hermes.supervision.root import ChildSpec
from tests.storage.samples import append
from tests.support.actor_system import counting_ids, make_ports, make_settings, start_actors
from tests.support.journals import LoopJournal
from tests.support.waiting import until

START = 1_800_000_000.0
QUICK = ProcessSettings(heartbeat_s=0.01)
SLOW = ProcessSettings(heartbeat_s=3600)  # what is noticed then is noticed without a look


@dataclass
class FakeProcess:
    handle: Handle
    out: bytearray = field(default_factory=bytearray)
    cpu_s: float = 0.0
    end: ProcessEnd | None = None
    ports: tuple[int, ...] = ()
    pipes: list[int] = field(default_factory=list)
    killed: bool = False


class FakeHost:
    def __init__(self) -> None:
        self.running: dict[str, FakeProcess] = {}
        self.on_start: Callable[[ProcessSpec], None] = lambda spec: None
        self.refuse = ""
        self.refuse_input: OSError | None = None
        self.descriptors = True
        self.forgotten: list[str] = []
        self.looks = 0
        self._pids = itertools.count(1000)
        self._ending = threading.Lock()  # an end between a look for it and the descriptor would go unseen

    def start(self, spec: ProcessSpec) -> Handle | FailedStart:
        self.on_start(spec)
        if self.refuse:
            return FailedStart(reason=self.refuse)
        handle = Handle(
            id=spec.id,
            folder=f"/processes/{spec.id}",
            pid=next(self._pids),
            started_ticks=1,
            shim_pid=1,
            shim_started_ticks=1,
            boot_id="b",
            started_at=START,
            command_hash="",
            terminal=spec.terminal,
            segment_bytes=1000,
        )
        self.running[spec.id] = FakeProcess(handle=handle)
        return handle

    def find(self, name: str) -> Handle | Lost:
        process = self.running.get(name)
        return process.handle if process else Lost(id=name, reason="its shim was killed")

    def look(self, handle: Handle) -> ProcessSample:
        process = self.running[handle.id]
        return ProcessSample(
            alive=process.end is None,
            output_bytes=len(process.out),
            last_output_at=START if process.out else None,
            cpu_s=process.cpu_s,
            end=process.end,
        )

    def look_all(self, handles: Sequence[Handle]) -> dict[str, ProcessSample]:
        self.looks += 1
        return {handle.id: self.look(handle) for handle in handles if handle.id in self.running}

    def ports(self, handles: Sequence[Handle]) -> dict[str, tuple[int, ...]]:
        return {handle.id: self.running[handle.id].ports for handle in handles if handle.id in self.running}

    def output(self, handle: Handle, offset: int, limit: int) -> Chunk:
        out = bytes(self.running[handle.id].out)
        return Chunk(offset=offset, data=out[offset : offset + limit], total=len(out))

    def tail(self, handle: Handle, limit: int) -> Chunk:
        return self.output(handle, max(0, len(self.running[handle.id].out) - limit), limit)

    def write(self, handle: Handle, data: bytes) -> int:
        if self.refuse_input is not None:
            raise self.refuse_input
        self.running[handle.id].out += b"echo:" + data
        return len(data)

    def typed(self, name: str) -> bytes:
        return b""

    def close_input(self, handle: Handle) -> None:
        self.running[handle.id].out += b"closed"

    def kill(self, handle: Handle, grace_s: float = 2.0, why: str = "") -> bool:
        self.running[handle.id].killed = True
        self.finish(handle.id, None, signal=15, reason=EndReason.KILLED, detail=why)
        return True

    def end_fd(self, handle: Handle) -> int | None:
        process = self.running[handle.id]
        with self._ending:
            if not self.descriptors or process.end is not None:
                return None
            reading, writing = os.pipe()
            process.pipes.append(writing)
            return reading

    def forget(self, handle: Handle | Lost) -> None:
        self.forgotten.append(handle.id)

    # ------------------------------------------------------------ for tests

    def finish(
        self,
        process: str,
        code: int | None = 0,
        *,
        signal: int | None = None,
        reason: EndReason = EndReason.EXITED,
        detail: str = "",
    ) -> None:
        found = self.running[process]
        with self._ending:
            size = len(found.out)
            found.end = ProcessEnd(
                reason=reason, code=code, signal=signal, ended_at=START + 5, output_bytes=size, detail=detail
            )
        while found.pipes:
            with suppress(OSError):
                os.close(found.pipes.pop())

    def close(self) -> None:
        for process in self.running.values():
            while process.pipes:
                os.close(process.pipes.pop())


class FakeDirectory(LoopActor):
    """Receives what the processes have to say to their sessions."""

    kind = "directory"

    def __init__(self, here: ProcessHarness) -> None:
        super().__init__()
        self._here = here

    def on_receive(self, message: object) -> object:
        match message:
            case Heartbeat():
                if not self._here.deaf:
                    self._here.board.receive(message)
            case Post(event=Submission() as submission):
                return self._here.submit(submission)
            case _:
                return super().on_receive(message)
        return None


class ProcessHarness:
    def __init__(self, settings: ProcessSettings = QUICK) -> None:
        self.now = START
        self.host = FakeHost()
        self.journal = LoopJournal()
        self.sent: list[Submission] = []  # that were accepted
        self.published: list[Event] = []
        self.refuse_with: HermesError | None = None
        self.on_sent: Callable[[], object] = lambda: None
        self.attempts = 0
        self.deaf = False  # nobody receives heartbeats
        self._ids = counting_ids()
        self._settings = settings
        for session in ("s", "t"):
            assert self.journal.engine.commit([(append(session, 0),)]) == [None]

    async def begin(self) -> None:
        """A boot of the daemon."""
        self.board = ProcessRegistry()
        self.threads = HostThreads()
        hub = EventHub()
        hub.on(get_args(Event), self.published.append)
        ports = make_ports(
            self.journal,
            lambda: self.now,
            host=self.host,
            threads=self.threads,
            registry=self.board,
            hub=hub,
            ids=self._ids,
        )
        self.system = assemble(ports, make_settings(processes=self._settings))
        self.front = self.system.processes
        directory = ChildSpec(
            name=DIRECTORY, start=lambda owner: FakeDirectory.start(self, name=DIRECTORY, owner=owner)
        )
        await start_actors(self.system, None, without={DELIVERY, DIRECTORY, RESETS}, connections=(directory,))

    @property
    def desk(self) -> ActorRef[Any]:
        return self.system.children[PROCESSES]

    @property
    def announced(self) -> list[Notice]:
        return [event for event in self.published if isinstance(event, Notice)]

    def submit(self, submission: Submission) -> Receipt:
        self.attempts += 1
        if self.refuse_with is not None:
            raise self.refuse_with
        duplicate = any(submission.inbound == before.inbound for before in self.sent)
        if not duplicate:
            self.sent.append(submission)
            self.on_sent()
        assert submission.session is not None
        return Receipt(session=submission.session, turn=submission.turn, duplicate=duplicate)

    async def start(self, session: str = "s", **wishes: Any) -> ProcessView:
        order = ProcessOrder(
            session=SessionId(session), command="make  all", argv=("make", "all"), cwd="/", environ={}, **wishes
        )
        return await self.front.start(order)

    def record(self, process: str) -> ProcessRecord | None:
        return next((record for record in self.journal.engine.processes() if record.id == process), None)

    def stored(self, process: str) -> ProcessRecord:
        record = self.record(process)
        assert record is not None
        return record

    def view(self, process: str) -> ProcessView:
        return self.board.view(process)

    async def ended(self, process: str) -> ProcessView:
        """For a test: its conversation does not hear of it by this."""
        await until(lambda: self.view(process).ended_at is not None)
        return self.view(process)

    async def look(self) -> None:
        """Two whole looks from now on."""
        before = self.host.looks
        await until(lambda: self.host.looks >= before + 3)

    async def restart(self) -> None:
        await self.close()
        await self.begin()

    async def close(self) -> None:
        await self.system.stop()
        await until(lambda: not live_actors())
        await self.system.close()
        await self.threads.close()


@asynccontextmanager
async def world(settings: ProcessSettings = QUICK) -> AsyncIterator[ProcessHarness]:
    made = ProcessHarness(settings)
    await made.begin()
    try:
        yield made
    finally:
        await made.close()
        made.host.close()
