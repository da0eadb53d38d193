"""Cronjob tool: scheduled jobs by conversation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from hermes.domain.access.role import Role
from hermes.domain.errors import HermesError
from hermes.domain.job.schedule import FORMATS
from hermes.domain.source import Source
from hermes.ports.job.jobs import JobCaller, Jobs
from hermes.tools.tool import Tool, ToolContext, ToolError, tool

_MAX_LISTED: Final = 50
_MAX_OUTPUT: Final = 1500


def cronjob_tool(jobs: Jobs) -> Tool:
    @tool("cronjob")
    async def cronjob(
        context: ToolContext,
        *,
        action: Literal["create", "list", "show", "edit", "pause", "resume", "run", "remove", "history"],
        job: Annotated[str, "id or name of the job, for all actions except create and list"] = "",
        schedule: Annotated[str, f"when it runs: {FORMATS}"] = "",
        prompt: Annotated[str, "what to do at each run; complete, since the run does not see this conversation"] = "",
        name: Annotated[str, "short name"] = "",
        deliver: Annotated[
            str,
            "where the report goes: origin (this chat, the default), home, local (stored only), all, or "
            "platform:chat[:thread]; several with commas",
        ] = "",
        timezone: Annotated[str, "time zone of the schedule, such as Europe/Berlin, if not the usual one"] = "",
        repeat: Annotated[int | None, "number of runs after which it ends"] = None,
        skills: Annotated[list[str] | None, "skills that each run loads"] = None,
        tools: Annotated[list[str] | None, "the only tools or toolsets of a run"] = None,
        context_from: Annotated[list[str] | None, "jobs whose last output is given to each run"] = None,
        script: Annotated[
            str, "file in the directory of scripts that runs first; its output is given to the run"
        ] = "",
    ) -> str:
        """Create and manage scheduled jobs: reminders, recurring reports, checks.

        Each run is a separate session without a person: it cannot ask, and its last message is delivered as the
        report. A run that has nothing to report answers [SILENT]. Confirm to the person what you have scheduled, with
        the time of the next run.
        """
        if context.role is Role.GUEST:
            raise ToolError("Guests cannot schedule jobs.")
        fields: dict[str, Any] = {
            "schedule": schedule or None,
            "prompt": prompt or None,
            "name": name or None,
            "deliver": deliver or None,
            "zone": timezone or None,
            "repeat": repeat,
            "skills": skills,
            "tools": tools,
            "context_from": context_from,
            "script": script or None,
        }
        try:
            return await _perform(jobs, action, job, fields, _caller(context))
        except HermesError as error:
            raise ToolError(f"{action} failed: {error}") from error

    return cronjob


def _caller(context: ToolContext) -> JobCaller:
    platform, _, user = context.by.partition(":")
    source = Source(platform=platform or context.platform, user=user, role=context.role)
    return JobCaller(source=source, session=context.session, operation=f"{context.turn}:{context.call}")


async def _perform(jobs: Jobs, action: str, job: str, fields: Mapping[str, Any], caller: JobCaller) -> str:
    if action == "create":
        made = jobs.shown(await jobs.create(fields, caller))
        return f"Created job {made['id']}.\n{_described(made)}"
    if action == "list":
        found = [jobs.shown(each) for each in await jobs.listed(caller, limit=_MAX_LISTED)]
        return "\n".join(map(_line, found)) or "There are no scheduled jobs."
    if not job:
        raise ToolError(f"{action} needs the id or the name of the job")
    match action:
        case "show":
            return _described(jobs.shown(await jobs.find(job, caller)))
        case "edit":
            return f"Changed.\n{_described(jobs.shown(await jobs.edit(job, fields, caller)))}"
        case "pause":
            return f"Paused {(await jobs.pause(job, caller)).id}."
        case "resume":
            return f"Resumed.\n{_described(jobs.shown(await jobs.resume(job, caller)))}"
        case "run":
            run = await jobs.run(job, caller)
            return f"Run {run.number} of {run.job} has begun. Its report is delivered as usual."
        case "remove":
            return f"Removed {(await jobs.remove(job, caller)).id}."
    runs = [jobs.shown_run(run) for run in await jobs.history(job, caller, limit=10)]
    return "\n".join(map(_run_line, runs)) or "It has not run yet."


def _described(job: Mapping[str, Any]) -> str:
    return "\n".join(filter(None, (_line(job), f"Prompt: {job['prompt']}" if job["prompt"] else "")))


def _line(job: Mapping[str, Any]) -> str:
    coming = f"next run {_time(job['next_run_at'])}" if job["next_run_at"] else "no further run"
    last = f", last run {job['last_state']}" if job["last_state"] else ""
    to = ", ".join(job["deliver"])
    return f"{job['id']} {job['name']!r}: {job['schedule']}, {job['state']}, {coming}{last}, delivers to {to}"


def _run_line(run: Mapping[str, Any]) -> str:
    why = f" ({run['explanation']})" if run["explanation"] else ""
    output = f": {run['output'][:_MAX_OUTPUT]}" if run["output"] else ""
    return f"Run {run['number']}, {_time(run['began_at'])}: {run['state']}{why}{output}"


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M %Z}"
