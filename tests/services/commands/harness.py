"""A small world for commands: real sessions behind a real front desk, and an agent that does what it is told."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from pykka import ActorRef

from hermes.actors.directory import SessionDirectory
from hermes.actors.kernel.actor import live_actors
from hermes.actors.reset_rules import ResetRules, ResetSettings
from hermes.app.factories.resets import LateProcessViews
from hermes.domain.access.role import Role
from hermes.domain.directory.settings import DirectorySettings
from hermes.domain.ids import SessionId, SessionKey, TurnId
from hermes.domain.message import EncodedMessage
from hermes.domain.session.jobs import ModelJob, ModelReport, SummaryJob, SummaryReport, ToolJob, ToolReport
from hermes.domain.session.protocol import TurnLimits
from hermes.domain.session.state import Session
from hermes.domain.source import Source
from hermes.domain.submission import Receipt, Submission
from hermes.domain.tool_call import Call, CallOutcome
from hermes.domain.usage import Usage
from hermes.ports.given import IdSource
from hermes.services.commands.registry import Parsed, Unknown, parse
from hermes.services.commands.reply import CommandCaller, CommandReply
from hermes.services.commands.service import CommandService
from hermes.services.event_hub import EventHub
from hermes.services.sessions import SessionService
from hermes.supervision.policy import RestartIntensity
from tests.support.fakes import FakeProcesses
from tests.support.journals import LoopJournal
from tests.support.waiting import until

SETTINGS = DirectorySettings(
    idle_after_s=600, max_live=1000, limits=TurnLimits(max_queue=4), memory_limit_bytes=0, seen_for_s=86400
)
START = 1_800_000_000.0
CLI = Source(platform="cli")
ANN = Source(platform="telegram", user="ann", role=Role.USER)
BOB = Source(platform="telegram", user="bob", role=Role.USER)


@dataclass
class Work:
    job: Any
    report: Callable[[Any], None]
    cancelled: bool = False
    written: str = ""

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class ScriptedAgent:
    thoughts: list[Work] = field(default_factory=list)
    acts: list[Work] = field(default_factory=list)
    summaries: list[Work] = field(default_factory=list)

    def think(self, job: ModelJob, report: Callable[[ModelReport], None]) -> Work:
        return _keep(self.thoughts, Work(job, report))

    def act(self, job: ToolJob, report: Callable[[ToolReport], None]) -> Work:
        return _keep(self.acts, Work(job, report))

    def summarise(self, job: SummaryJob, report: Callable[[SummaryReport], None]) -> Work:
        return _keep(self.summaries, Work(job, report))


def _keep(works: list[Work], work: Work) -> Work:
    works.append(work)
    return work


class CommandHarness:
    def __init__(self) -> None:
        self.now = START
        self.models = ["toy-1", "toy-2"]
        self.restarts: list[str] = []
        self.journal = LoopJournal()
        self.agent = ScriptedAgent()
        self.hub = EventHub()
        self.rules = ResetRules(
            ResetSettings(),
            processes=LateProcessViews(),
            clock=lambda: self.now,
            steady=lambda: self.now,
            pulse=lambda: self.now,
        )
        self.processes = FakeProcesses()
        self._ids, self._turns = itertools.count(1), itertools.count(1)
        self.directory: ActorRef[SessionDirectory] = SessionDirectory.start(
            settings=SETTINGS,
            journal=self.journal,
            agent=self.agent,
            hub=self.hub,
            clock=lambda: self.now,
            identity=IdSource(session=lambda _: SessionId(f"fresh-{next(self._ids)}"), turn=self.new_turn_id),
            restart_policy=RestartIntensity(first_delay_s=0.0, max_delay_s=0.0),
            resets=self.rules,
            was_reset=cast("Any", None),  # nothing is reset here
            memory_bytes=lambda: 0,
            name="directory",
        )
        self.desk = SessionService(
            directory=lambda: self.directory, journal=cast("Any", self.journal), clock=lambda: self.now, max_waiting=9
        )
        self.commands = CommandService(
            self.desk,
            new_turn_id=self.new_turn_id,
            clock=lambda: self.now,
            models=lambda: self.models,
            personalities=lambda: ("concise", "teacher"),
            processes=self.processes,
            context_window=lambda: 1000,
            restart=self._restart,
        )

    async def _restart(self, reason: str, who: str) -> None:
        self.restarts.append(f"{reason} by {who}")

    def new_turn_id(self) -> TurnId:
        return TurnId(f"turn-{next(self._turns)}")

    # ------------------------------------------------------------ people

    async def say(
        self, text: str, session: str | None = None, *, key: str | None = None, source: Source = CLI
    ) -> Receipt:
        self.now += 1
        return await self.desk.submit(
            Submission(
                turn=self.new_turn_id(),
                messages=(said(text),),
                source=source,
                session=None if session is None else SessionId(session),
                key=None if key is None else SessionKey(key),
            )
        )

    async def talk(
        self, text: str, session: str | None = None, *, key: str | None = None, source: Source = CLI
    ) -> SessionId:
        """A whole turn: the message and its answer. Returns where it took place."""
        receipt = await self.say(text, session, key=key, source=source)
        await self.answer(f"about {text}")
        return receipt.session

    async def command(
        self, text: str, session: str | None = None, *, key: str | None = None, source: Source = CLI
    ) -> CommandReply:
        parsed = parse(text)
        assert isinstance(parsed, Parsed | Unknown)
        caller = CommandCaller(
            source=source,
            session=None if session is None else SessionId(session),
            key=None if key is None else SessionKey(key),
        )
        return await self.commands.run(parsed, caller)

    async def session(self, session: str) -> Session:
        return (await self.desk.view(SessionId(session))).session

    async def transcript(self, session: str) -> list[str]:
        return [
            json.loads(each.message)["content"] for each in await self.desk.messages(SessionId(session), None, 50)
        ]

    # ------------------------------------------------------------ the agent

    async def answer(self, text: str = "yes", *calls: Call) -> None:
        """The model answers what it was last asked."""
        work = await self.next_thought()
        message = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = cast(
                "Any",
                [
                    {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": "{}"}}
                    for call in calls
                ],
            )
        job = work.job
        work.report(
            ModelReport(
                turn=job.turn,
                attempt=job.attempt,
                replies=job.replies,
                message=EncodedMessage(json.dumps(message).encode()),
                text=text,
                model="toy-1",
                finish_reason="tool_calls" if calls else "stop",
                usage=Usage(prompt_tokens=100, completion_tokens=10, cached_tokens=40, cost_usd=0.25),
                calls=calls,
                context_tokens=110,
            )
        )
        await self.settle()

    async def next_thought(self) -> Work:
        await until(lambda: bool(self.agent.thoughts))
        return self.agent.thoughts.pop(0)

    async def finish_tool(self) -> None:
        await until(lambda: bool(self.agent.acts))
        work = self.agent.acts.pop(0)
        message = EncodedMessage(
            json.dumps({"role": "tool", "tool_call_id": work.job.call, "content": "ok"}).encode()
        )
        work.report(
            ToolReport(
                turn=work.job.turn,
                attempt=work.job.attempt,
                call=work.job.call,
                message=message,
                outcome=CallOutcome.OK,
                took_s=0.1,
            )
        )
        await self.settle()

    async def finish_summary(self, *messages: EncodedMessage) -> None:
        await until(lambda: bool(self.agent.summaries))
        self.agent.summaries.pop(0).report(SummaryReport(messages=messages))
        await self.settle()

    async def settle(self) -> None:
        await until(lambda: all(actor.statistics().mailbox == 0 for actor in live_actors()), rounds=5)


def said(text: str) -> EncodedMessage:
    return EncodedMessage(json.dumps({"role": "user", "content": text}).encode())


@asynccontextmanager
async def world() -> AsyncIterator[CommandHarness]:
    here = CommandHarness()
    try:
        yield here
    finally:
        await here.directory.stop(block=False)
        await until(lambda: not live_actors())
