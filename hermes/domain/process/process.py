"""Values of background processes: specification, handle, sample, output and end."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from hermes.domain.process.sandbox_launch import Box
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """Resources that a command and all its children may use. Zero: no limit. A command above a limit is killed.

    They are sampled, so that a command can exceed a limit for a short time.
    """

    memory_bytes: int = 4 * 2**30
    processes: int = 512
    output_bytes: int = 10 * 2**30  # ever written
    spool_bytes: int = 20 * 10**6  # of it, kept on disk: the end, at least half of this. Never zero


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """Command to start. `environ` is its whole environment: make it with `child_environment`."""

    id: str  # names its folder
    argv: tuple[str, ...]
    cwd: str
    environ: Mapping[str, str]
    terminal: bool = False
    limits: ProcessLimits = ProcessLimits()
    box: Box | None = None  # the sandbox it runs in


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """Process that this daemon or an earlier one has started. The start times tell it from others with its pid."""

    id: str
    folder: str
    pid: int  # of the command, and of its group
    started_ticks: int  # since the machine's start: a clock that is set does not touch it
    shim_pid: int
    shim_started_ticks: int
    boot_id: str
    started_at: float
    command_hash: str
    terminal: bool
    segment_bytes: int
    boxed: bool = False  # `pid` is the sandbox's monitor; the command is below its init
    network: bool = False  # the daemon serves a proxy in its sandbox
    hosts: tuple[str, ...] = ()  # that the proxy allows it, besides those of every conversation
    folder_inode: int = 0  # a copy of the folder has another one, for example in a restored home; 0: unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedStart:
    """Nothing runs, and nothing is left on disk."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A process whose end is unknown. Its output may still exist."""

    id: str
    reason: str


class EndReason(StrEnum):
    EXITED = "exited"
    KILLED = "killed"  # on request
    MEMORY = "memory"
    PROCESSES = "processes"
    OUTPUT = "output"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnd:
    reason: EndReason
    code: int | None = None  # neither code nor signal: unknown
    signal: int | None = None
    ended_at: float = 0.0
    output_bytes: int = 0  # that were stored, of which the last are still there
    dropped_bytes: int = 0  # that could not be stored, because of `problem`
    problem: str = ""
    detail: str = ""  # of a limit that was exceeded, of a loss, or who asked for its end
    left: tuple[str, ...] = ()  # names of what outlived the command and was ended


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSample:
    """Sample of a process. CPU and memory include all its children; None: the system does not report it."""

    alive: bool
    output_bytes: int
    last_output_at: float | None  # None: it has written nothing
    cpu_s: float | None = None
    rss_bytes: int | None = None
    processes: int | None = None
    age_s: float | None = None  # by the kernel's count
    end: ProcessEnd | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Output from `offset` on. The offset is later than the requested one if that part is not kept any more."""

    offset: int
    data: bytes
    total: int  # written so far
    kept_from: int = 0  # what was written before is gone
