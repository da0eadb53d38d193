"""Background process ports: the list, control of processes, and the machine that runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from hermes.domain.access.role import Role
from hermes.domain.ids import SessionId
from hermes.domain.process.process import Chunk, FailedStart, Handle, Lost, ProcessSample, ProcessSpec
from hermes.domain.process.process_record import Heartbeat, ProcessView
from hermes.domain.process.sandbox_launch import Box
from hermes.domain.values import dataclass


class Processes(Protocol):
    """List of background processes, read from memory on the event loop.

    A running process is shown as of the last heartbeat that its session, or the directory for it, has received.
    """

    def views(self, root: SessionId | None = None) -> tuple[ProcessView, ...]:
        """Return the processes of a conversation, given the first session of its lineage, or of all."""


class HeartbeatReceiver(Processes, Protocol):
    def receive(self, heartbeat: Heartbeat) -> None:
        """Keep a heartbeat. Called by the actor that has received it."""


class ProcessList(Processes, Protocol):
    """The process list and the actions that people can take on it."""

    async def listed(self, session: SessionId) -> tuple[ProcessView, ...]:
        """Return the processes of a session and of its ancestors, oldest first."""

    def blocks(self, view: ProcessView) -> str:
        """Return why this process delays a reset; empty if it does not."""

    def explain(self, view: ProcessView) -> str:
        """Describe its age, its activity, and why it delays a reset, if it does."""

    async def output(self, process: str, offset: int, limit: int) -> Chunk: ...
    async def tail(self, process: str, limit: int) -> Chunk: ...
    async def kill(self, process: str, why: str, *, heard: bool = False) -> ProcessView:
        """Kill the process and everything it started. Returns when it has ended, or after a short timeout.

        `why` is shown with its end. With `heard`, the session gets no separate notice of the end.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOrder:
    """Request to start a background process. `environ` is its whole environment."""

    session: SessionId
    command: str  # as requested
    argv: tuple[str, ...]
    cwd: str
    environ: Mapping[str, str] = field(repr=False)
    pty: bool = False
    box: Box | None = None  # sandbox of the process
    notify: bool = False
    watch: tuple[str, ...] = ()
    role: Role = Role.GUEST  # role of the starting turn, and of the turns that its notices start


class BackgroundProcesses(ProcessList, Protocol):
    """Background processes as the agent controls them. All methods raise HermesErrors only."""

    async def start(self, order: ProcessOrder) -> ProcessView: ...
    async def write(self, process: str, data: bytes) -> int: ...
    def typed(self, process: str) -> str:
        """Return the input since the last newline; empty for an unknown process. Blocking, for approval gates."""

    async def close_input(self, process: str) -> None: ...
    async def wait(self, process: str, timeout_s: float) -> ProcessView:
        """Wait until the process has ended or the time is over. The session gets no separate notice of the end."""


class NetworkedProcesses(Protocol):
    async def networked(self) -> tuple[Handle, ...]:
        """Return the processes in a sandbox with network access."""


class ProcessHost(Protocol):
    """Machine that runs the processes. All methods block; call them from threads."""

    def start(self, spec: ProcessSpec) -> Handle | FailedStart: ...
    def find(self, name: str) -> Handle | Lost: ...
    def look(self, handle: Handle) -> ProcessSample: ...
    def look_all(self, handles: Sequence[Handle]) -> dict[str, ProcessSample]: ...
    def ports(self, handles: Sequence[Handle]) -> dict[str, tuple[int, ...]]: ...
    def output(self, handle: Handle, offset: int, limit: int) -> Chunk: ...
    def tail(self, handle: Handle, limit: int) -> Chunk: ...
    def write(self, handle: Handle, data: bytes) -> int: ...
    def typed(self, name: str) -> bytes: ...
    def close_input(self, handle: Handle) -> None: ...
    def kill(self, handle: Handle, grace_s: float = 2.0, why: str = "") -> bool: ...
    def end_fd(self, handle: Handle) -> int | None: ...
    def forget(self, handle: Handle | Lost) -> None: ...
