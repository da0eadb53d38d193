"""Prompt of a run and report of its end, as text. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from hermes.domain.job.job import Job, JobRun, RunProblem
from hermes.domain.text.fence import fenced
from hermes.domain.text.injection import suspicion
from hermes.domain.values import dataclass

SILENT: Final = "[SILENT]"
MAX_OUTPUT: Final = 50_000  # characters of a kept output
MAX_SCRIPT_OUTPUT: Final = 20_000  # characters of a script's output
MAX_CONTEXT: Final = 8_000  # characters of another job's output

_OPENING: Final = (
    "You are running as a scheduled job. Nobody reads along and nobody can answer questions. Your last message is "
    "delivered automatically as the report: do not send it yourself. If there is nothing to report, answer with "
    f"{SILENT} alone; then nothing is delivered."
)
_PROBLEMS: Final = {
    RunProblem.NONE: "",
    RunProblem.MODEL: "the agent could not finish",
    RunProblem.SCRIPT: "its script failed",
    RunProblem.INTERRUPTED: "the daemon ended while its script ran, so its outcome is unknown; it was not run again",
    RunProblem.SETUP: "it cannot run as it is set up",
    RunProblem.BLOCKED: "its prompt was blocked",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptParts:
    """What the prompt of a run is made of."""

    skills: tuple[str, ...] = ()  # texts
    context: tuple[tuple[str, str], ...] = ()  # names and outputs of other jobs
    script_output: str = ""


def prompt_of(job: Job, parts: PromptParts, marker: str) -> str:
    sections = [_OPENING]
    sections += [f"Follow this skill.\n\n{text}" for text in parts.skills]
    for name, output in parts.context:
        sections.append(f"Last output of the job {name}:\n{fenced(output, marker, max_chars=MAX_CONTEXT)}")
    if parts.script_output.strip():
        shown = fenced(parts.script_output.strip(), marker, max_chars=MAX_SCRIPT_OUTPUT)
        sections.append(f"Output of the script {job.script}:\n{shown}")
    sections.append(f"The job:\n\n{job.prompt.strip() or 'Report what the script has found.'}")
    return "\n\n".join(sections)


def attack_in(job: Job, skills: Sequence[str] = ()) -> str:
    """Return why the prompt looks like an attack; empty if it does not."""
    return next((found for text in (job.prompt, *skills) if (found := suspicion(text))), "")


def wakes_agent(script_output: str) -> bool:
    """Return whether the script lets the agent run: `{"wakeAgent": false}` as its last line does not."""
    last = next((line for line in reversed(script_output.splitlines()) if line.strip()), "")
    if not last.lstrip().startswith("{"):
        return True
    try:
        found = json.loads(last)
    except ValueError:
        return True
    return not (isinstance(found, dict) and found.get("wakeAgent") is False)


def is_silent(output: str) -> bool:
    """Return whether the output is not to be delivered: it is empty, or its first or last line is the marker."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return not lines or SILENT in (lines[0], lines[-1])


def report_text(job: Job, output: str, *, wrap: bool) -> str:
    if not wrap:
        return output.strip()
    return f"Scheduled job “{job.label}”\n\n{output.strip()}"


def failure_text(job: Job, run: JobRun) -> str:
    tries = f" after {run.attempt + 1} attempts" if run.attempt else ""
    later = (
        " Further failures of this job are not reported until it works again."
        if job.next_at is not None and not job.paused
        else ""
    )
    return (
        f"The scheduled job “{job.label}” failed{tries}: {explained(run)}.{later} "
        f"`hermes cron history {job.id}` shows its runs."
    )


def explained(run: JobRun) -> str:
    """Return why a run failed, in words."""
    return ": ".join(filter(None, (_PROBLEMS[run.problem], " ".join(run.detail.split())[:300].rstrip("."))))


def bounded(text: str, most: int = MAX_OUTPUT) -> str:
    return text if len(text) <= most else f"{text[:most]}\n… ({len(text) - most} more characters)"
