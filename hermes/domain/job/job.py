"""Job: what to run on a schedule, for whom, where to report, and where it stands. Pure values.

A job is one row of the store. The row has a version, so that two writers cannot overwrite each other, and the time
when the scheduler must look at it next.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from hermes.domain.ids import SessionKey
from hermes.domain.job.schedule import Schedule
from hermes.domain.source import Source
from hermes.domain.values import dataclass

MAX_NAME: Final = 80
MAX_PROMPT: Final = 20_000
LOCAL: Final = "local"
ORIGIN: Final = "origin"


class MissedPolicy(StrEnum):
    """Treatment of occurrences whose time passed while no daemon ran."""

    LATE = "late"  # the last one runs late, within the grace period
    SKIP = "skip"  # none runs
    ALL = "all"  # each runs, one after the other


class ApprovalPolicy(StrEnum):
    """Treatment of a run's calls that need an approval."""

    DENY = "deny"
    ASK = "ask"  # the owner's chat is asked, and the run waits


class JobRunState(StrEnum):
    """State of a run. The last five are ends."""

    WORKING = "working"
    DONE = "done"
    QUIET = "quiet"  # the script decided that there is nothing to do
    FAILED = "failed"
    MISSED = "missed"  # its time passed while no daemon ran
    OVERLAPPED = "overlapped"  # the run before it was not done

    @property
    def ended(self) -> bool:
        return self is not JobRunState.WORKING


class RunCause(StrEnum):
    """Why a run began."""

    DUE = "due"
    LATE = "late"
    MANUAL = "manual"
    RETRY = "retry"


class ScriptState(StrEnum):
    NONE = ""
    STARTED = "started"  # its outcome is unknown if the daemon ended
    ENDED = "ended"


class RunProblem(StrEnum):
    """Reason why a run failed."""

    NONE = ""
    MODEL = "model"  # the turn failed
    SCRIPT = "script"  # the script failed
    INTERRUPTED = "interrupted"  # the script has no recorded outcome
    SETUP = "setup"  # what the job names does not exist any more
    BLOCKED = "blocked"  # the prompt looks like an attack


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    id: str
    name: str
    schedule: Schedule
    source: Source  # for whom it works, with whose role; its place is the chat where it was created
    prompt: str = ""
    zone: str = ""  # IANA name; empty: the configured one
    deliver: tuple[str, ...] = (LOCAL,)
    tools: tuple[str, ...] = ()  # names of tools and toolsets; empty: all that its person has
    model: str = ""  # [PROVIDER:]MODEL; empty: the configured one
    skills: tuple[str, ...] = ()
    workdir: str = ""
    script: str = ""  # file in $HERMES_HOME/scripts
    no_agent: bool = False  # the output of the script is the report
    context_from: tuple[str, ...] = ()  # jobs whose last outputs are part of the prompt
    max_steps: int = 0
    max_tokens: int = 0
    max_usd: float = 0.0
    repeat: int = 0  # number of occurrences; 0: no limit
    missed: MissedPolicy = MissedPolicy.LATE
    grace_s: float = 0.0  # 0: half a period, between two minutes and two hours
    jitter_s: float = 0.0
    retries: int = 0
    approvals: ApprovalPolicy = ApprovalPolicy.DENY
    paused: bool = False
    origin_key: SessionKey = SessionKey("")  # of the conversation in which it was created
    created_at: float = 0.0
    version: int = 0
    next_at: float | None = None  # its next occurrence; None: there is none
    last_at: float = 0.0  # the last occurrence that was taken
    running: int = 0  # number of the run that is not done; 0: none
    runs: int = 0  # number of its last run
    taken: int = 0  # occurrences that ran, for `repeat`
    last_state: str = ""  # of the last run that ended
    last_problem: str = ""
    last_run_at: float = 0.0  # end of that run
    failures: int = 0  # runs in a row that failed
    retry_at: float | None = None  # the failed occurrence runs again
    attempt: int = 0  # retries of that occurrence so far
    ended_at: float | None = None  # it has no more occurrences
    failure_told: bool = False  # the failures since it worked last were reported
    retry_of: float = 0.0  # nominal time of the occurrence that is repeated

    @property
    def label(self) -> str:
        return self.name or self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """One occurrence of a job, and what came of it."""

    job: str
    number: int
    occurrence: str  # unique: of an occurrence, or of a person's request
    at: float  # nominal time
    began_at: float
    cause: RunCause = RunCause.DUE
    state: JobRunState = JobRunState.WORKING
    session: str = ""
    script: ScriptState = ScriptState.NONE
    script_output: str = ""
    ended_at: float | None = None
    output: str = ""
    problem: RunProblem = RunProblem.NONE
    detail: str = ""  # of the problem
    missed: int = 0  # occurrences that this row stands for
    until: float = 0.0  # the last of them
    delivered: tuple[str, ...] = ()  # ids of outbox messages
    attempt: int = 0
