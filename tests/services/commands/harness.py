"""A small world for commands: real sessions behind a real front desk, and an agent that does what it is told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from pykka import ActorRef

from hermes.actors.kernel.actor import live_actors
from hermes.agent.chat_message import encode
from hermes.app.actor_system import DELIVERY, DIRECTORY, PROCESSES, RESETS, assemble
from hermes.domain.access.role import Role
from hermes.domain.ids import SessionId, SessionKey
from hermes.domain.session.jobs import ModelJob, ModelReport, SummaryJob, SummaryReport, ToolJob, ToolReport
from hermes.domain.session.state import Preferences, Session
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.reasoning import Reasoning, fields_of
from hermes.domain.turn.submission import Receipt, Submission
from hermes.domain.turn.tool_call import Call, CallOutcome
from hermes.domain.turn.usage import Usage
from hermes.services.commands.registry import Parsed, Unknown, parse
from hermes.services.commands.reply import CommandCaller, CommandReply
from hermes.services.commands.service import CommandService
from tests.support.actor_system import make_ports, make_settings, start_actors
from tests.support.fakes import FakeProcesses
from tests.support.journals import LoopJournal
from tests.support.waiting import until

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
        self.configured = Preferences()
        self.model_problems: dict[str, str] = {}
        self.restarts: list[str] = []
        self.platforms = [
            {"name": "telegram", "state": "running", "problem": ""},
            {"name": "slack", "state": "down", "problem": "no network"},
        ]
        self.journal = LoopJournal()
        self.agent = ScriptedAgent()
        self.processes = FakeProcesses()
        ports = make_ports(self.journal, lambda: self.now)
        self.system = assemble(ports, make_settings(max_waiting=9))
        self.hub, self.desk, self.new_turn_id = ports.hub, self.system.sessions, ports.ids.turn
        self.commands = CommandService(
            self.desk,
            new_turn_id=self.new_turn_id,
            clock=lambda: self.now,
            models=lambda: self.models,
            model_problem=lambda name: self.model_problems.get(name, ""),
            personalities=lambda: ("concise", "teacher"),
            processes=self.processes,
            context_window=lambda: 1000,
            configured=lambda: self.configured,
            restart=self._restart,
            platforms=lambda: self.platforms,
        )

    @property
    def directory(self) -> ActorRef[Any]:
        return self.system.children[DIRECTORY]

    async def _restart(self, reason: str, who: str) -> None:
        self.restarts.append(f"{reason} by {who}")

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

    async def answer(self, text: str = "yes", *calls: Call, reasoning: str = "") -> None:
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
                message=encode({**message, **fields_of(Reasoning(text=reasoning))}),
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
    await start_actors(here.system, here.agent, without={DELIVERY, PROCESSES, RESETS})
    try:
        yield here
    finally:
        await here.system.stop()
        await until(lambda: not live_actors())
