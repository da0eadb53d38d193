"""Background process as the journal stores it and as people see it."""

from __future__ import annotations

from hermes.domain.access.role import Role
from hermes.domain.ids import SessionId, SessionKey
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRecord:
    """Stored state of a background process. Written before the process starts, so that none is lost."""

    id: str  # "proc_" and 12 hex digits
    root: SessionId  # whose folder its conversation works in
    session: SessionId  # that started it
    key: SessionKey
    platform: str
    command: str  # a summary, one line
    cwd: str
    started_at: float
    notify: bool = False  # its conversation is notified of its end
    watch: tuple[str, ...] = ()  # words in its output to report
    pty: bool = False
    pid: int = 0  # 0: not known to have started
    active_at: float = 0.0  # about when it last did something
    watched_bytes: int = 0  # of its output, searched for `watch`
    ended_at: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""  # of its end: exited, killed, memory, processes, output, lost
    detail: str = ""
    output_bytes: int = 0  # at its end
    told: bool = False  # its conversation was notified of its end
    role: Role | None = None  # of the turn that started it; None: stored before there were roles


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessView:
    """View of a background process."""

    id: str
    session: SessionId
    command: str  # a summary, one line
    pid: int
    started_at: float  # from the kernel's own count of its age, so that it moves along when the clock is set
    heartbeat_at: float  # when its actor last saw it alive
    active_at: float  # when it last did something: CPU above a floor, or output
    cpu_s: float = 0.0
    output_bytes: int = 0
    ports: tuple[int, ...] = ()  # that it listens on
    ended_at: float | None = None
    exit_code: int | None = None  # None after its end: unknown
    signal: int | None = None  # that ended it
    reason: str = ""  # of its end: exited, killed, memory, processes, output, lost
    detail: str = ""
    memory_bytes: int = 0
    known: bool = True  # False: this daemon has found it again just now, and cannot tell yet whether it works
    untold: bool = False  # it has ended, and its conversation is not notified yet
    notify: bool = False  # its conversation is notified of its end


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """Message of a process actor to the session that started the process: it is alive, and this is its activity.

    While the session is not in memory, the directory receives it. Staleness is judged on the last one received.
    """

    process: ProcessView
