"""The command `/cron`: scheduled jobs."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final

from hermes.domain.errors import BadInputError
from hermes.domain.job.job import Job, JobRun
from hermes.domain.job.shown_job import state_of
from hermes.ports.job.jobs import JobCaller, Jobs
from hermes.services.commands.context import CommandContext, Handler
from hermes.services.commands.reply import CommandReply, refused

_MAX_LISTED: Final = 50
_MAX_RUNS: Final = 10
_MAX_OUTPUT: Final = 300
_FIELD: Final = re.compile(r"[\d*/,\-A-Za-z#?]+")
_CRON_FIELDS: Final = 5
_CREATE: Final = ("create", "add")
_ACTIONS: Final = ("list", *_CREATE, "show", "edit", "pause", "resume", "run", "remove", "delete", "history")


async def cron(context: CommandContext) -> CommandReply:
    jobs = context.services.jobs
    if jobs is None:
        return refused("There are no scheduled jobs here.")
    word, _, rest = context.argument.strip().partition(" ")
    rest = rest.strip()
    caller = JobCaller(
        source=context.caller.source,
        session=None if context.session is None else context.session.id,
        operation=f"command:{context.caller.inbound}" if context.caller.inbound else "",
    )
    if word in ("", "list"):
        return CommandReply(text=_listed(await jobs.listed(caller, limit=_MAX_LISTED)))
    if word not in _ACTIONS:
        return context.usage(f"There is no action {word[:40]!r}. Actions: {', '.join(_ACTIONS)}.")
    if not rest:
        needed = "a schedule and a prompt" if word in _CREATE else "the id or the name of the job"
        return context.usage(f"/cron {word} needs {needed}.")
    return await _act(context, jobs, word, rest, caller)


async def _act(context: CommandContext, jobs: Jobs, word: str, rest: str, caller: JobCaller) -> CommandReply:
    match word:
        case "create" | "add":
            schedule, prompt = split_schedule(rest)
            fields: dict[str, Any] = {"schedule": schedule, "prompt": prompt}
            return CommandReply(text=f"Created. {_line(await jobs.create(fields, caller))}")
        case "show":
            job = await jobs.find(rest, caller)
            return CommandReply(text=f"{_line(job)}\n{job.prompt}".strip())
        case "edit":
            name, _, changed = rest.partition(" ")
            if not changed.strip():
                return context.usage("/cron edit needs a job and its new schedule.")
            schedule, prompt = split_schedule(changed)
            fields = {"schedule": schedule or None, "prompt": prompt or None}
            return CommandReply(text=f"Changed. {_line(await jobs.edit(name, fields, caller))}")
        case "pause":
            return CommandReply(text=f"Paused. {_line(await jobs.pause(rest, caller))}")
        case "resume":
            return CommandReply(text=f"Resumed. {_line(await jobs.resume(rest, caller))}")
        case "run":
            run = await jobs.run(rest, caller)
            return CommandReply(text=f"Run {run.number} of job {run.job} has begun.")
        case "remove" | "delete":
            return CommandReply(text=f"Deleted job {(await jobs.remove(rest, caller)).id}.")
        case "history":
            runs = await jobs.history(rest, caller, limit=_MAX_RUNS)
            return CommandReply(text="\n".join(map(_run_line, runs)) or "The job has not run yet.")
    raise AssertionError(word)


def split_schedule(text: str) -> tuple[str, str]:
    """Return schedule and prompt of a command. The schedule can be in quotes. Raises BadInputError."""
    said = text.strip()
    if said[:1] in ("'", '"', "“"):
        quote = {"“": "”"}.get(said[0], said[0])
        schedule, found, prompt = said[1:].partition(quote)
        if found:
            return schedule.strip(), prompt.strip()
        raise BadInputError("the quote around the schedule is not closed", code="bad_schedule")
    words = said.split()
    if words[0].lower() == "every":
        many = 3 if len(words) > 2 and words[1].isdecimal() else 2
    elif (
        len(words) > _CRON_FIELDS
        and all(_FIELD.fullmatch(each) for each in words[:_CRON_FIELDS])
        and (any(mark in words[0] for mark in "*/,-") or words[0].isdecimal())
    ):
        many = _CRON_FIELDS
    else:
        many = 1
    return " ".join(words[:many]), said.split(None, many)[many] if len(words) > many else ""


def _listed(jobs: list[Job]) -> str:
    return "\n".join(map(_line, jobs)) or "There are no scheduled jobs. /cron create SCHEDULE PROMPT makes one."


def _line(job: Job) -> str:
    coming = f", next run {_moment(job.next_at)}" if job.next_at is not None and not job.paused else ""
    last = f", last run {job.last_state}" if job.last_state else ""
    return f"{job.id} {job.label}: {job.schedule.text}, {state_of(job)}{coming}{last}, to {', '.join(job.deliver)}"


def _run_line(run: JobRun) -> str:
    output = " ".join(run.output.split())[:_MAX_OUTPUT]
    return f"{run.number}, {_moment(run.began_at)}: {run.state}" + (f": {output}" if output else "")


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M %Z}"


HANDLERS: dict[str, Handler] = {"cron": cron}
