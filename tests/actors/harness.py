"""A small world for session tests: real actors and machine, a journal without threads, work that ends when told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pykka import ActorRef

from hermes.actors.kernel.actor import live_actors
from hermes.actors.process.process_registry import ProcessRegistry
from hermes.actors.reset.reset_rules import ResetSettings
from hermes.app.actor_system import DELIVERY, DIRECTORY, PROCESSES, RESETS, Ports, assemble
from hermes.domain.directory.directory_settings import DirectorySettings
from hermes.domain.ids import InboundKey, SessionId, SessionKey, TurnId
from hermes.domain.process.process import Handle
from hermes.domain.process.process_record import Heartbeat, ProcessRecord, ProcessView
from hermes.domain.process.process_state import ProcessRow
from hermes.domain.session.jobs import ModelJob, ModelReport, SummaryJob, SummaryReport, ToolJob, ToolReport
from hermes.domain.session.state import Session
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Receipt, Submission
from hermes.domain.turn.tool_call import Call, CallOutcome
from hermes.domain.turn.turn_failure import Failure
from hermes.domain.turn.usage import Usage
from hermes.ports.given import Clock
from tests.actors.talk import assistant, result, user
from tests.support.actor_system import DIRECTORY_SETTINGS, counting_ids, make_ports, make_settings, start_actors
from tests.support.chat_platform import ToyPlatform
from tests.support.journals import LoopJournal
from tests.support.waiting import until

API = Source(platform="api")
USAGE = Usage(prompt_tokens=1, completion_tokens=1)


@dataclass
class Thought:
    """A model call in flight."""

    job: ModelJob
    report: Callable[[ModelReport], None]
    cancelled: bool = False
    written: str = ""

    def cancel(self) -> None:
        self.cancelled = True

    def answer(self, text: str = "yes", *, full: bool = False) -> None:
        self.report(self._made(text, (), full=full))

    def call(self, *calls: Call) -> None:
        """Ask for tools."""
        self.report(self._made("", calls))

    def fail(self, failure: Failure) -> None:
        job = self.job
        self.report(ModelReport(turn=job.turn, attempt=job.attempt, replies=job.replies, failure=failure))

    def _made(self, text: str, calls: tuple[Call, ...], *, full: bool = False) -> ModelReport:
        job = self.job
        return ModelReport(
            turn=job.turn,
            attempt=job.attempt,
            replies=job.replies,
            message=assistant(text, calls),
            text=text,
            model="m",
            finish_reason="tool_calls" if calls else "stop",
            usage=USAGE,
            calls=calls,
            prompt=None if job.prompt else EncodedMessage(b'{"role":"system","content":"be kind"}'),
            context_full=full,
        )


@dataclass
class Deed:
    """A tool call in flight."""

    job: ToolJob
    report: Callable[[ToolReport], None]
    cancelled: bool = False
    written: str = ""

    def cancel(self) -> None:
        self.cancelled = True

    def finish(self, text: str = "done") -> None:
        job = self.job
        self.report(
            ToolReport(
                turn=job.turn,
                attempt=job.attempt,
                call=job.call,
                message=result(job.call, text),
                outcome=CallOutcome.OK,
                took_s=0.1,
            )
        )


@dataclass
class Shortening:
    """A summary being made."""

    job: SummaryJob
    report: Callable[[SummaryReport], None]
    cancelled: bool = False
    written: str = ""

    def cancel(self) -> None:
        self.cancelled = True

    def finish(self, keep: int = 1) -> None:
        """A summary, and so many of the last messages as they are."""
        kept = tuple(self.job.messages[len(self.job.messages) - keep :])
        self.report(SummaryReport(messages=(user("[Summary of the earlier part]"), *kept)))

    def fail(self, problem: str = "the model was busy") -> None:
        self.report(SummaryReport(problem=problem))


@dataclass
class FakeAgent:
    """Remembers what was started. `poison` raises in whoever asks a model about a prompt that holds it."""

    started: list[Thought] = field(default_factory=list)
    deeds: list[Deed] = field(default_factory=list)
    summaries: list[Shortening] = field(default_factory=list)
    poison: bytes = b"no such text"

    def think(self, job: ModelJob, report: Callable[[ModelReport], None]) -> Thought:
        if any(self.poison in bytes(message) for message in job.messages):
            raise RuntimeError("poisoned")
        self.started.append(Thought(job=job, report=report))
        return self.started[-1]

    def act(self, job: ToolJob, report: Callable[[ToolReport], None]) -> Deed:
        self.deeds.append(Deed(job=job, report=report))
        return self.deeds[-1]

    def summarise(self, job: SummaryJob, report: Callable[[SummaryReport], None]) -> Shortening:
        self.summaries.append(Shortening(job=job, report=report))
        return self.summaries[-1]

    def prompt(self, number: int = -1) -> list[str]:
        return [message.decode() for message in self.started[number].job.messages]


class FakeProcesses(ProcessRegistry):
    """Registry of processes that are all heard of; those that work do so all the time."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.filled.set()
        self.all: list[ProcessView] = []
        self.received: list[Heartbeat] = []
        self.working: set[str] = set()
        self.heard_at: float | None = None  # a time: nothing was heard of any since
        self._clock = clock

    def receive(self, heartbeat: Heartbeat) -> None:
        self.received.append(heartbeat)

    def get(self, process: str) -> ProcessRow | None:
        return next((_row(view) for view in self.all if view.id == process), None)

    def view(self, process: str) -> ProcessView:
        return next(view for view in self.all if view.id == process)

    def views(self, chosen: Callable[[ProcessRow], bool]) -> tuple[ProcessView, ...]:
        return tuple(self._seen(view) for view in self.all if chosen(_row(view)))

    def _seen(self, process: ProcessView) -> ProcessView:
        now = self._clock() if self.heard_at is None else self.heard_at
        return replace(process, heartbeat_at=now, active_at=now if process.id in self.working else process.active_at)


def _row(view: ProcessView) -> ProcessRow:
    record = ProcessRecord(
        id=view.id,
        root=view.session,
        session=view.session,
        key=SessionKey(""),
        platform="",
        command=view.command,
        cwd="",
        started_at=view.started_at,
    )
    return ProcessRow(record=record, view=view)


class FakeHost:
    """Host and its threads at once: all that is asked of it is to end processes."""

    def __init__(self, end_process: Callable[[str], Awaitable[None]]) -> None:
        self._end_process = end_process

    def find(self, name: str) -> Handle:
        return Handle(
            id=name,
            folder="",
            pid=1,
            started_ticks=1,
            shim_pid=1,
            shim_started_ticks=1,
            boot_id="b",
            started_at=0.0,
            command_hash="",
            terminal=False,
            segment_bytes=1,
        )

    def kill(self, handle: Handle, grace_s: float, why: str) -> Awaitable[None]:
        return self._end_process(handle.id)

    async def call(self, call: Callable[[], Awaitable[None]]) -> None:
        await call()


class SessionHarness:
    def __init__(
        self, journal: LoopJournal, settings: ResetSettings, now: float, directory: DirectorySettings
    ) -> None:
        self.now = now
        self.set_by = 0.0  # how far the clock was set since the beginning
        self.frozen_s = 0.0  # how long the daemon was
        self.memory = 0
        self.ids = 0
        self.ended: list[str] = []  # processes
        self.end_process = self._end_process
        self.processes = FakeProcesses(lambda: self.now)
        self.platform = ToyPlatform()
        self.journal = journal
        self.agent = FakeAgent()
        self.system = assemble(self._ports(), make_settings(resets=settings, directory=directory))
        self.hub = self.system.ports.hub
        self.rules, self.after_reset, self.desk = self.system.rules, self.system.after_reset, self.system.sessions

    def _ports(self) -> Ports:
        host = FakeHost(lambda name: self.end_process(name))  # noqa: PLW0108 - tests replace it
        return make_ports(
            self.journal,
            lambda: self.now,
            host=host,
            threads=host,
            registry=self.processes,
            platforms={"toy": self.platform},
            steady=lambda: self.now - self.set_by,
            pulse=lambda: self.frozen_s,
            ids=replace(counting_ids(), session=self._next_id),
        )

    @property
    def directory(self) -> ActorRef[Any]:
        return self.system.children[DIRECTORY]

    async def _end_process(self, process: str) -> None:
        self.ended.append(process)

    def _next_id(self, now: float) -> SessionId:
        self.ids += 1
        return SessionId(f"fresh-{self.ids}")

    async def say(
        self,
        text: str,
        session: str | None = None,
        *,
        key: str | None = None,
        inbound: str | None = None,
        busy: str = "",
        source: Source = API,
    ) -> Receipt:
        return await self.desk.submit(
            Submission(
                turn=TurnId(text),
                messages=(user(text),),
                source=source,
                session=None if session is None else SessionId(session),
                key=None if key is None else SessionKey(key),
                inbound=None if inbound is None else InboundKey(inbound),
                fingerprint=text.encode() if inbound else b"",
                busy=busy,
            )
        )

    async def session(self, session: str = "s") -> Session:
        """The live end of that id's lineage."""
        return (await self.desk.view(SessionId(session))).session

    async def phase(self, session: str) -> str:
        return (await self.session(session)).phase

    async def shown(self, session: str = "s") -> list[str]:
        """The transcript, as an adapter reads it."""
        stored = await self.desk.messages(SessionId(session), None, 1000)
        return [_short(each.message) for each in stored]

    async def answer_next(self, text: str = "yes", *, full: bool = False) -> Thought:
        thought = await self.started(1)
        self.agent.started.pop(0)
        thought.answer(text, full=full)
        await self.settle()
        return thought

    async def call_next(self, *calls: Call) -> Thought:
        """The model asks for tools."""
        thought = await self.started(1)
        self.agent.started.pop(0)
        thought.call(*calls)
        await self.settle()
        return thought

    async def finish_next(self, text: str = "done") -> Deed:
        """The tool call that began first is done."""
        await until(lambda: bool(self.agent.deeds))
        deed = self.agent.deeds.pop(0)
        deed.finish(text)
        await self.settle()
        return deed

    async def summarise_next(self, keep: int = 1) -> Shortening:
        await until(lambda: bool(self.agent.summaries))
        summary = self.agent.summaries.pop(0)
        summary.finish(keep)
        await self.settle()
        return summary

    async def started(self, count: int) -> Thought:
        await until(lambda: len(self.agent.started) >= count)
        return self.agent.started[0]

    async def settle(self) -> None:
        """Until nobody has mail."""
        await until(lambda: all(actor.statistics().mailbox == 0 for actor in live_actors()), rounds=5)

    def live(self) -> set[str]:
        return {actor.name for actor in live_actors() if actor.kind == "session"}


def _short(message: EncodedMessage) -> str:
    fields = json.loads(message)
    calls = " ".join(call["id"] for call in fields.get("tool_calls", ()))
    return f"{fields['role']}: {fields['content'] or calls}"


@asynccontextmanager
async def world(
    journal: LoopJournal | None = None,
    resets: ResetSettings | None = None,
    *,
    children: Collection[str] = (DIRECTORY,),
    now: float = 1000.0,
    directory: DirectorySettings = DIRECTORY_SETTINGS,
    harness: type[SessionHarness] = SessionHarness,
) -> AsyncIterator[SessionHarness]:
    here = harness(journal or LoopJournal(), resets or ResetSettings(), now, directory)
    without = {DELIVERY, DIRECTORY, PROCESSES, RESETS} - {*children}
    await start_actors(here.system, here.agent, without=without, memory_bytes=lambda: here.memory)
    try:
        yield here
    finally:
        await here.system.stop()
        await here.system.close()
        await until(lambda: not live_actors())
