"""Runs of jobs as child sessions: the script, the prompt, the end of the run and its report.

Each step is stored in the run before the next one begins. A script that has begun and has no recorded outcome is not
run again. A job without an agent needs no session: its script's output is the report.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from loguru import logger

from hermes.actors.commit import store
from hermes.domain.access.role import Role
from hermes.domain.child.child import Assignment, ChildDuty, Purpose
from hermes.domain.errors import BadInputError, HermesError, StoppingError
from hermes.domain.events import TurnAnswered, TurnGaveUp, TurnOutcome
from hermes.domain.ids import SessionId
from hermes.domain.job.claim import put
from hermes.domain.job.job import ApprovalPolicy, Job, JobRun, JobRunState, RunCause, RunProblem, ScriptState
from hermes.domain.job.occurrence import finish, is_last_try
from hermes.domain.job.report import (
    MAX_SCRIPT_OUTPUT,
    PromptParts,
    attack_in,
    bounded,
    failure_text,
    is_silent,
    prompt_of,
    report_text,
    wakes_agent,
)
from hermes.domain.operations import Operation, PutJobRun
from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.read.reader import Reader
from hermes.domain.session.builder import encode
from hermes.domain.values import replace
from hermes.ports.children import ChildGroup, ChildPlan, ChildPurpose, ChildReport
from hermes.ports.given import Clock
from hermes.ports.job.jobs import JobSettings, ScriptRunner
from hermes.ports.storage import Journal
from hermes.services.jobs.job_delivery import JobDelivery, Report
from hermes.system.crash_point import reach

NEVER: Final = frozenset({"cronjob", "clarify"})  # tools that no run has
SkillText = Callable[[str], Awaitable[str]]  # raises a HermesError for an unknown skill
Available = Callable[[str, Role], Awaitable[tuple[str, ...]]]  # names of the tools on a platform, for a role
ToolsOf = Callable[[str], tuple[str, ...]]  # tools of a toolset; of a tool, itself


class JobPurpose(ChildPurpose):
    def __init__(
        self,
        *,
        journal: Journal,
        clock: Clock,
        settings: Callable[[], JobSettings],
        delivery: JobDelivery,
        available: Available,
        tools_of: ToolsOf,
        skill_text: SkillText,
        run_script: ScriptRunner,
        prepare_folder: Callable[[SessionId, str], None],  # blocking: makes the working directory that of the session
        new_marker: Callable[[], str],
        look: Callable[[], None],  # tells the scheduler that a job has changed
        note: Callable[[JobRunState], None] = lambda _: None,
        at_once: int = 8,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._settings = settings
        self._delivery = delivery
        self._available = available
        self._tools_of = tools_of
        self._skill_text = skill_text
        self._run_script = run_script
        self._prepare_folder = prepare_folder
        self._new_marker = new_marker
        self._look = look
        self._note = note
        self._is_stopping = is_stopping
        self._group = ChildGroup(name=Purpose.JOB, at_once=at_once)
        self._states: dict[str, JobRunState] = {}  # of the runs whose end is being stored

    def group(self, duty: ChildDuty) -> ChildGroup:  # noqa: ARG002 - all of them share one limit
        return self._group

    # ------------------------------------------------------------ the work

    async def plan(self, duty: ChildDuty) -> ChildPlan | None:
        job, run = await self._load(duty)
        if job is None or run is None or run.problem is not RunProblem.NONE:
            return None
        if job.script:
            run = await self._scripted(job, run, duty)
            if run.problem is not RunProblem.NONE or job.no_agent or not wakes_agent(run.script_output):
                return None
        try:
            return await self._plan(job, run, duty)
        except BadInputError as error:
            await self._store(replace(run, problem=RunProblem.SETUP, detail=str(error)))
            return None

    async def _plan(self, job: Job, run: JobRun, duty: ChildDuty) -> ChildPlan | None:
        skills = tuple([await self._skill(name) for name in job.skills])
        if problem := attack_in(job):
            await self._store(replace(run, problem=RunProblem.BLOCKED, detail=problem))
            return None
        context = [await self._context(name) for name in job.context_from]
        parts = PromptParts(
            skills=skills,
            context=tuple(each for each in context if each is not None),
            script_output=run.script_output,
        )
        if job.workdir:
            await self._choose_folder(duty.child, job.workdir)
        settings = self._settings()
        assignment = Assignment(
            purpose=Purpose.JOB,
            key=duty.key,
            tools=await self._tools(job),
            model=job.model,
            max_steps=job.max_steps or settings.max_steps,
            max_tokens=job.max_tokens or settings.max_tokens,
            max_usd=job.max_usd or settings.max_usd,
            asks=job.approvals is ApprovalPolicy.ASK,
            asked_in=await self._delivery.asked_in(job),
        )
        content = prompt_of(job, parts, self._new_marker())
        return ChildPlan(assignment=assignment, message=encode(role="user", content=content))

    async def _skill(self, name: str) -> str:
        try:
            return await self._skill_text(name)
        except HermesError as error:
            raise BadInputError(f"the skill {name} cannot be used: {error}") from error

    async def _context(self, job: str) -> tuple[str, str] | None:
        """Return name and last output of another job."""
        return await self._journal.fetch(lambda reader: _last_output(reader, job))

    async def _choose_folder(self, session: SessionId, workdir: str) -> None:
        try:
            await asyncio.to_thread(self._prepare_folder, session, workdir)
        except OSError as error:
            raise BadInputError(f"the working directory {workdir} cannot be used: {error}") from error

    async def _tools(self, job: Job) -> tuple[str, ...]:
        have = await self._available(job.source.platform, job.source.standing)
        wanted = {tool for name in job.tools for tool in self._tools_of(name)}
        return tuple(name for name in have if name not in NEVER and (not wanted or name in wanted))

    async def _scripted(self, job: Job, run: JobRun, duty: ChildDuty) -> JobRun:
        """Run the script, once, and return the run with its outcome."""
        match run.script:
            case ScriptState.ENDED:
                return run
            case ScriptState.STARTED:
                logger.warning("job {}: the script of run {} has no recorded outcome", job.id, run.number)
                return await self._store(replace(run, problem=RunProblem.INTERRUPTED))
            case ScriptState.NONE if self._is_stopping():  # it would be ended at once
                raise StoppingError("the daemon is stopping; the script runs after the restart")
            case ScriptState.NONE:
                run = await self._store(replace(run, script=ScriptState.STARTED))
        reach("job: script begins")
        problem, detail, output = RunProblem.NONE, "", ""
        try:
            code, output = await self._run_script(job, duty.child)
            if code:
                problem, detail = RunProblem.SCRIPT, f"exit code {code}"
        except BadInputError as error:
            problem, detail = RunProblem.SETUP, str(error)
        reach("job: script has ended")
        kept = bounded(output, MAX_SCRIPT_OUTPUT)
        ended = replace(run, script=ScriptState.ENDED, script_output=kept, problem=problem, detail=detail)
        stored = await self._store(ended)
        reach("job: script stored")
        return stored

    # ------------------------------------------------------------ the end

    async def report(self, duty: ChildDuty, outcome: TurnOutcome) -> tuple[OutboxMessage, ...]:
        return (await self.conclude(duty, outcome)).messages

    async def conclude(self, duty: ChildDuty, outcome: TurnOutcome | None) -> ChildReport:
        job, run = await self._load(duty)
        if job is None or run is None:  # removed meanwhile
            return ChildReport()
        run = _with_outcome(job, run, outcome)
        self._states[duty.key] = run.state
        return await self._ended(job, run)

    async def _ended(self, job: Job, run: JobRun) -> ChildReport:
        now, settings = self._clock(), self._settings()
        after = finish(job, run, now, settings.terms)
        text = self._text(job, after, run)
        failed = run.state is JobRunState.FAILED
        after = replace(after, failure_told=failed and (job.failure_told or bool(text)))
        report = await self._delivery.report(job, run, text) if text else Report()
        unknown = f"not delivered to {', '.join(report.unknown)}" if report.unknown else ""
        run = replace(
            run,
            ended_at=now,
            delivered=tuple(each.id for each in report.messages),
            detail="; ".join(filter(None, (run.detail, unknown))),
        )
        operations: tuple[Operation, ...] = (
            put(after, job, settings.terms),
            PutJobRun(run=run, keep=settings.keep_runs),
            *report.duties,
        )
        return ChildReport(messages=report.messages, operations=operations)

    def _text(self, job: Job, after: Job, run: JobRun) -> str:
        """Return the text to deliver; empty if there is none. Failures in a row are reported once."""
        if run.state is JobRunState.FAILED:
            told = job.failure_told and run.cause is not RunCause.MANUAL
            return "" if told or not is_last_try(job, run) else failure_text(after, run)
        if run.state is not JobRunState.DONE or is_silent(run.output):
            return ""
        return report_text(job, run.output, wrap=self._settings().wrap)

    def reported(self, duty: ChildDuty) -> None:
        if (state := self._states.pop(duty.key, None)) is not None:
            self._note(state)
        self._look()
        self._delivery.take_up()

    # ------------------------------------------------------------ the store

    async def _load(self, duty: ChildDuty) -> tuple[Job | None, JobRun | None]:
        name, number = duty.topics
        return await self._journal.fetch(lambda reader: (reader.job(name), reader.job_run(name, int(number))))

    async def _store(self, run: JobRun) -> JobRun:
        await store(self._journal, (PutJobRun(run=run, keep=self._settings().keep_runs),))
        return run


def _with_outcome(job: Job, run: JobRun, outcome: TurnOutcome | None) -> JobRun:
    """Return the run as it ended: with the outcome of its session, or without one."""
    match outcome:
        case TurnAnswered():
            return replace(run, state=JobRunState.DONE, output=bounded(outcome.text))
        case TurnGaveUp():
            detail = outcome.failure.message
            return replace(run, state=JobRunState.FAILED, problem=RunProblem.MODEL, detail=detail)
    run = replace(run, session="")  # it was never opened
    if run.problem is not RunProblem.NONE:
        return replace(run, state=JobRunState.FAILED, output=run.script_output)
    speaks = job.no_agent and wakes_agent(run.script_output)
    return replace(run, state=JobRunState.DONE if speaks else JobRunState.QUIET, output=run.script_output)


def _last_output(reader: Reader, name: str) -> tuple[str, str] | None:
    job = reader.job(name)
    if job is None:
        raise BadInputError(f"context_from names the job {name}, which does not exist any more")
    done = (run for run in reader.job_runs(name, 20) if run.state is JobRunState.DONE and run.output.strip())
    run = next(done, None)
    return None if run is None else (job.label, run.output)
