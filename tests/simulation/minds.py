"""Models and tools that answer, stream, fail, hang, ask for tools and for leave, as chance decides.

They stand where the agent's own thinking, acting and summarising stand in the real runner. What a model is shown is
compared with the disk, and what a tool changes is written down.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from hermes.domain.errors import HermesError
from hermes.domain.events import TextDelta
from hermes.domain.ids import SessionId
from hermes.domain.read.transcript import Transcript
from hermes.domain.records import BadRecord, ToolStarted
from hermes.domain.session.jobs import ModelJob, ModelReport, SummaryJob, SummaryReport, ToolJob, ToolReport
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.tool_call import Call, CallJudgement, CallOutcome, CallState, Gate, JudgeVerdict, Verdict
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.turn.usage import Usage
from hermes.ports.hub import Hub
from hermes.ports.processes import ProcessOrder
from hermes.services.processes import ProcessService
from tests.actors.talk import asks, assistant, does, needs_leave, reads, result, user
from tests.simulation.disk import Disk
from tests.simulation.machine import SESSION
from tests.simulation.outside import Outside
from tests.support.judge import Effect, Shown

PROMPT = EncodedMessage(b'{"role":"system","content":"be kind"}')
USAGE = Usage(prompt_tokens=3, completion_tokens=2)
SUMMARY = "[Summary of the earlier part of this conversation]"
PASSING = (FailureKind.TIMEOUT, FailureKind.CONNECTION, FailureKind.OVERLOADED, FailureKind.BAD_REQUEST)
JUDGEMENTS = tuple(CallJudgement(verdict=each, model="judge") for each in JudgeVerdict)
BLOCKED = Gate(verdict=Verdict.BLOCK, reason="it is never allowed")


class Minds:
    """All three: `answer` thinks, `run` acts, `shorten` summarises."""

    def __init__(self, outside: Outside, hub: Hub, processes: ProcessService) -> None:
        self._outside = outside
        self._hub = hub
        self._processes = processes

    # ------------------------------------------------------------ a model

    async def answer(
        self, job: ModelJob, _models: object, _caller: object, said: list[str], _retried: object = None
    ) -> ModelReport:
        outside = self._outside
        outside.history.add(
            Shown(session=job.session, inbounds=heard(job.messages), ahead=ahead_of(outside.disk, job))
        )
        outside.note(f"think {job.session} {job.turn} {job.attempt} {job.replies} {len(job.messages)}")
        if problem := unpaired(job.messages):
            outside.complain(f"{job.session} {job.turn}: {problem}")
        if not outside.faulty:
            await asyncio.sleep(outside.chance.uniform(0.05, 0.5))
            return self._answered(job)
        await asyncio.sleep(outside.chance.choice((0.01, 0.1, 1.0, 4.0)) * outside.chance.random())
        match outside.chance.random():
            case luck if luck < 0.32 and not job.last:
                calls = tuple(self._call() for _ in range(outside.chance.choice((1, 1, 2, 3))))
                return self._said(job, "", calls)
            case luck if luck < 0.36 and not job.last and job.by.startswith("api"):
                return self._handed(job)
            case luck if luck < 0.40:
                return _failed(job, outside.chance.choice(PASSING))
            case luck if luck < 0.44:
                return _failed(job, FailureKind.CONTEXT_OVERFLOW)
            case luck if luck < 0.50:
                await asyncio.sleep(outside.chance.uniform(20, 50))
                return _failed(job, FailureKind.TIMEOUT)
        for word in ("well", "then"):
            said.append(word)
            self._hub.publish(TextDelta(session=job.session, turn=job.turn, text=word))
            await asyncio.sleep(outside.chance.uniform(0.01, 0.5))
        return self._answered(job, full=outside.chance.random() < 0.08)

    def _answered(self, job: ModelJob, *, full: bool = False) -> ModelReport:
        return self._said(job, f"{self._outside.number('answer')} to {job.turn}", (), full=full)

    def _said(self, job: ModelJob, text: str, calls: tuple[Call, ...], *, full: bool = False) -> ModelReport:
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
            prompt=None if job.prompt else PROMPT,
            context_full=full,
        )

    def _handed(self, job: ModelJob) -> ModelReport:
        """Calls that the client runs, some beside calls of our own."""
        names = [self._outside.number("client-call") for _ in range(self._outside.chance.choice((1, 2)))]
        handed = tuple(Call(id=name, name="look", state=CallState.HANDED) for name in names)
        own = (self._call(),) if self._outside.happens(0.4) else ()
        report = self._said(job, self._outside.number("answer"), own or handed)
        if not own:
            return replace(report, calls=(), handed=handed)
        return replace(report, handed=handed, handed_message=assistant("", handed))

    def _call(self) -> Call:
        name = self._outside.number("call")
        match self._outside.chance.random():
            case luck if luck < 0.35:
                return does(name)
            case luck if luck < 0.65:
                return reads(name)
            case luck if luck < 0.76:
                return needs_leave(name)
            case luck if luck < 0.80:
                return replace(needs_leave(name), judgement=self._outside.chance.choice(JUDGEMENTS))
            case luck if luck < 0.90:
                return asks(name, "red", "blue")
            case luck if luck < 0.95:
                return does(name, gate=BLOCKED)
        return does(name, problem="there is no such tool")

    # ------------------------------------------------------------ a tool

    async def run(self, job: ToolJob, *_: object) -> ToolReport:
        outside = self._outside
        outside.note(f"run {job.session} {job.call} {job.name}")
        began = outside.time()
        await asyncio.sleep(self._pause_s())
        if job.name == "write":
            outside.history.add(Effect(call=job.call, recorded=_is_recorded(outside.disk, job)))
            outside.note(f"effect {job.call}")
            outside.moment("after an effect")
            if outside.happens(0.2):
                await self._begin_process(job)
        await asyncio.sleep(self._pause_s())
        broke = outside.happens(0.1)
        return ToolReport(
            turn=job.turn,
            attempt=job.attempt,
            call=job.call,
            message=result(job.call, "it broke" if broke else "done"),
            outcome=CallOutcome.ERROR if broke else CallOutcome.OK,
            took_s=outside.time() - began,
        )

    async def _begin_process(self, job: ToolJob) -> None:
        environ = {SESSION: job.session}
        with suppress(HermesError):  # the tool would say so
            await self._processes.start(
                ProcessOrder(
                    session=job.session,
                    command=f"make {self._outside.number('target')}",  # a notice of its end names it
                    argv=("make",),
                    cwd="/",
                    environ=environ,
                    notify=True,
                )
            )

    def _pause_s(self) -> float:
        if self._outside.happens(0.04):
            return self._outside.chance.uniform(10, 25)
        return self._outside.chance.choice((0.001, 0.05, 1.0)) * self._outside.chance.random()

    # ------------------------------------------------------------ a summary

    async def shorten(self, job: SummaryJob, *_: object) -> SummaryReport:
        """Everything that was said stays in it, so that it can still be looked for."""
        outside = self._outside
        outside.note(f"summarise {job.session}")
        await asyncio.sleep(outside.chance.uniform(0.01, 2.0))
        if outside.happens(0.3):
            return SummaryReport(problem="the model was busy")
        return SummaryReport(messages=(user(" ".join((SUMMARY, *heard(job.messages)))),), usage=USAGE, model="m")


def _failed(job: ModelJob, kind: FailureKind) -> ModelReport:
    failure = Failure(kind=kind, message="as chance decided")
    return ModelReport(turn=job.turn, attempt=job.attempt, replies=job.replies, failure=failure)


def _is_recorded(disk: Disk, job: ToolJob) -> bool:
    entries = (entry.record for entry in disk.log(job.session))
    return any(isinstance(record, ToolStarted) and record.call == job.call for record in entries)


def ahead_of(disk: Disk, job: ModelJob) -> str:
    """What of the prompt the disk does not have."""
    if disk.failed:
        return ""
    stored = transcript_of(disk, job.session).messages
    if list(job.messages) != stored:
        return f"{len(job.messages)} messages, {len(stored)} on disk"
    chosen = next(row.preferences for row in disk.sessions() if row.id == job.session)
    return "" if job.preferences == chosen else f"{job.preferences}, {chosen} on disk"


def unpaired(messages: Iterable[EncodedMessage]) -> str:
    """A call without its one result before the next message, or a result without its call; empty if there is none."""
    waiting: set[str] = set()
    for message in messages:
        fields = json.loads(message)
        if fields["role"] == "tool":
            if fields["tool_call_id"] not in waiting:
                return f"a result of {fields['tool_call_id']} without its call"
            waiting.discard(fields["tool_call_id"])
        elif waiting:
            return f"no result of {sorted(waiting)}"
        else:
            waiting = {call["id"] for call in fields.get("tool_calls") or ()}
    return f"no result of {sorted(waiting)}" if waiting else ""


def transcript_of(disk: Disk, session: SessionId) -> Transcript:
    transcript = Transcript()
    transcript.extend((each.seq, each.record) for each in disk.log(session) if not isinstance(each.record, BadRecord))
    return transcript


def heard(messages: Iterable[EncodedMessage]) -> tuple[str, ...]:
    """What people said, by the ids that are its text: in messages, in answers that tools got, in summaries."""
    said: list[str] = []
    for message in messages:
        fields = json.loads(message)
        if fields["role"] in ("user", "tool"):
            said.extend(word for word in str(fields["content"]).split() if is_inbound(word))
    return tuple(said)


def is_inbound(word: str) -> bool:
    return word.startswith("said-")
