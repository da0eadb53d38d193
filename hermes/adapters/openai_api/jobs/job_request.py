"""Requests and answers about scheduled jobs, as types."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

import msgspec
from msgspec import UNSET, Meta, UnsetType

from hermes.adapters.http.schema import Fields, FilledText, Text
from hermes.domain.job.job import MAX_NAME, MAX_PROMPT, ApprovalPolicy, JobRunState, MissedPolicy, RunCause

Names = Annotated[list[FilledText], Meta(max_length=20)]
Whole = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Seconds = Annotated[float, Meta(ge=0, le=2_592_000)]


class JobChange(Fields):
    """Fields of a job. One that is left out keeps its value, or has its default."""

    schedule: FilledText | UnsetType = UNSET
    prompt: Annotated[Text, Meta(max_length=MAX_PROMPT)] | UnsetType = UNSET
    name: Annotated[Text, Meta(max_length=MAX_NAME)] | UnsetType = UNSET
    deliver: Text | Names | UnsetType = UNSET
    timezone: Text | UnsetType = UNSET
    tools: Names | UnsetType = UNSET
    model: Text | UnsetType = UNSET
    skills: Names | UnsetType = UNSET
    workdir: Text | UnsetType = UNSET
    script: Text | UnsetType = UNSET
    no_agent: bool | UnsetType = UNSET
    context_from: Names | UnsetType = UNSET
    repeat: Whole | UnsetType = UNSET
    missed: MissedPolicy | UnsetType = UNSET
    grace_s: Seconds | UnsetType = UNSET
    jitter_s: Seconds | UnsetType = UNSET
    retries: Annotated[int, Meta(ge=0, le=10)] | UnsetType = UNSET
    approvals: ApprovalPolicy | UnsetType = UNSET
    max_steps: Whole | UnsetType = UNSET
    max_tokens: Whole | UnsetType = UNSET
    max_usd: Annotated[float, Meta(ge=0, le=100_000)] | UnsetType = UNSET

    def given(self) -> dict[str, Any]:
        """Return the fields that were given, by the names of a job."""
        found = {each.name: getattr(self, each.name) for each in msgspec.structs.fields(self)}
        given = {name: value for name, value in found.items() if value is not UNSET}
        if "timezone" in given:
            given["zone"] = given.pop("timezone")
        return given


class JobRequest(JobChange, kw_only=True):
    schedule: FilledText


class JobListQuery(Fields):
    limit: Annotated[int, Meta(ge=1, le=1000)] = 200
    after: Text = ""


class JobRunListQuery(Fields):
    limit: Annotated[int, Meta(ge=1, le=1000)] = 20


class JobJson(TypedDict):
    id: str
    name: str
    state: Literal["scheduled", "running", "paused", "ended"]
    schedule: str
    kind: Literal["once", "every", "cron"]
    timezone: str
    prompt: str
    deliver: list[str]
    next_run_at: float | None
    retry_at: float | None
    last_run_at: float | None
    last_state: str
    last_problem: str
    failures: int
    runs: int
    running: int
    tools: list[str]
    model: str
    skills: list[str]
    workdir: str
    script: str
    no_agent: bool
    context_from: list[str]
    repeat: int
    missed: MissedPolicy
    grace_s: float
    jitter_s: float
    retries: int
    approvals: ApprovalPolicy
    max_steps: int
    max_tokens: int
    max_usd: float
    created_at: float
    created_by: str


class JobRunJson(TypedDict):
    job: str
    number: int
    occurrence: str
    state: JobRunState
    cause: RunCause
    due_at: float
    began_at: float
    ended_at: float | None
    session_id: str | None
    attempt: int
    output: str
    problem: str
    explanation: str
    missed: int
    until: float | None
    delivered: list[str]


class OneJob(TypedDict):
    job: JobJson


class JobList(TypedDict):
    jobs: list[JobJson]
    has_more: bool


class OneJobRun(TypedDict):
    run: JobRunJson


class JobRunList(TypedDict):
    runs: list[JobRunJson]


class JobDeleted(TypedDict):
    id: str
    deleted: Literal[True]
