"""Jobs and runs as JSON, for every surface. Pure."""

from __future__ import annotations

from typing import Any

from hermes.domain.job.job import Job, JobRun
from hermes.domain.job.report import explained


def state_of(job: Job) -> str:
    """Return the state of a job in one word."""
    if job.running:
        return "running"
    if job.ended_at is not None:
        return "ended"
    return "paused" if job.paused else "scheduled"


def shown_job(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "name": job.name,
        "state": state_of(job),
        "schedule": job.schedule.text,
        "kind": job.schedule.kind.value,
        "timezone": job.zone,
        "prompt": job.prompt,
        "deliver": list(job.deliver),
        "next_run_at": None if job.paused else job.next_at,
        "retry_at": job.retry_at,
        "last_run_at": job.last_run_at or None,
        "last_state": job.last_state,
        "last_problem": job.last_problem,
        "failures": job.failures,
        "runs": job.runs,
        "running": job.running,
        "tools": list(job.tools),
        "model": job.model,
        "skills": list(job.skills),
        "workdir": job.workdir,
        "script": job.script,
        "no_agent": job.no_agent,
        "context_from": list(job.context_from),
        "repeat": job.repeat,
        "missed": job.missed.value,
        "grace_s": job.grace_s,
        "jitter_s": job.jitter_s,
        "retries": job.retries,
        "approvals": job.approvals.value,
        "max_steps": job.max_steps,
        "max_tokens": job.max_tokens,
        "max_usd": job.max_usd,
        "created_at": job.created_at,
        "created_by": job.source.by,
    }


def shown_run(run: JobRun) -> dict[str, Any]:
    return {
        "job": run.job,
        "number": run.number,
        "occurrence": run.occurrence,
        "state": run.state.value,
        "cause": run.cause.value,
        "due_at": run.at,
        "began_at": run.began_at,
        "ended_at": run.ended_at,
        "session_id": run.session or None,
        "attempt": run.attempt,
        "output": run.output,
        "problem": run.problem.value,
        "explanation": explained(run) if run.problem or run.detail else "",
        "missed": run.missed,
        "until": run.until or None,
        "delivered": list(run.delivered),
    }
