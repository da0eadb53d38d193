"""Port of scheduled jobs: what commands, tools and adapters can do with them, and the settings in force."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import Any, Protocol

from hermes.domain.ids import SessionId
from hermes.domain.job.job import Job, JobRun
from hermes.domain.job.occurrence import JobTerms
from hermes.domain.source import Source
from hermes.domain.values import dataclass


class ZoneFinder(Protocol):
    def __call__(self, name: str) -> tzinfo:
        """Return the time zone of that name; of an empty name, the configured one. Raises BadInputError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    terms: JobTerms
    find_zone: ZoneFinder
    enabled: bool = True
    keep_runs: int = 50
    wrap: bool = True
    script_timeout_s: float = 3600.0
    approvals: str = "deny"
    retries: int = 0
    jitter_s: float = 0.0
    max_steps: int = 0
    max_tokens: int = 0
    max_usd: float = 0.0

    def zone_of(self, job: Job) -> tzinfo:
        return self.find_zone(job.zone)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCaller:
    """Person or agent who asks for something, and the conversation in which that happens."""

    source: Source
    session: SessionId | None = None
    operation: str = ""  # unique: repeated after a crash, it has no second effect; empty: not repeated


class Jobs(Protocol):
    """Methods of scheduled jobs. A job is named by its id, the beginning of its id, or its name.

    All methods raise HermesErrors only. People other than the owner and admins see and change their own jobs.
    """

    async def create(self, fields: Mapping[str, Any], caller: JobCaller) -> Job: ...
    async def listed(self, caller: JobCaller, *, limit: int = 200, after: str = "") -> list[Job]: ...
    async def find(self, name: str, caller: JobCaller) -> Job: ...
    async def edit(self, name: str, fields: Mapping[str, Any], caller: JobCaller) -> Job: ...
    async def pause(self, name: str, caller: JobCaller) -> Job: ...
    async def resume(self, name: str, caller: JobCaller) -> Job: ...
    async def run(self, name: str, caller: JobCaller) -> JobRun: ...
    async def remove(self, name: str, caller: JobCaller) -> Job: ...
    async def history(self, name: str, caller: JobCaller, *, limit: int = 20) -> list[JobRun]: ...
    def shown(self, job: Job) -> dict[str, Any]:
        """Return a job as JSON."""

    def shown_run(self, run: JobRun) -> dict[str, Any]: ...


class ScriptRunner(Protocol):
    async def __call__(self, job: Job, session: str) -> tuple[int, str]:
        """Run the script of a job, and return its exit code and output. Raises BadInputError if it cannot run."""
