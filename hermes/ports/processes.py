"""Background processes: who runs them, who lists them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from hermes.domain.access.role import Role
from hermes.domain.process.box import Box
from hermes.domain.process.process import Chunk, FailedStart, Handle, Heartbeat, Lost, ProcessSpec
from hermes.domain.types import ProcessView, SessionId
from hermes.domain.values import dataclass


class Processes(Protocol):
    """Background processes, as everyone sees them: one list, from memory, on the loop."""

    def views(self, root: SessionId | None = None) -> tuple[ProcessView, ...]:
        """Those of a conversation, by the first session of its lineage; None: all there are."""


class ProcessList(Processes, Protocol):
    """The list, and what a person can do with it."""

    async def listed(self, session: SessionId) -> tuple[ProcessView, ...]:
        """Those of that session and of all it grew from, the oldest first."""

    def blocks(self, view: ProcessView) -> str:
        """Why a reset waits for it; empty: it does not."""

    def explain(self, view: ProcessView) -> str:
        """Its age, what it did, and whether and why a reset waits for it."""

    async def output(self, process: str, offset: int, limit: int) -> Chunk: ...
    async def tail(self, process: str, limit: int) -> Chunk: ...
    async def kill(self, process: str, why: str, *, heard: bool = False) -> ProcessView:
        """Has it ended, with all that it started; answers when that is known, or a while later.

        `why` is shown wherever its end is. `heard`: the answer is its conversation's, which is told nothing more.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOrder:
    """A background process to be started. `environ` is all that it gets."""

    session: SessionId
    command: str  # as it was asked for
    argv: tuple[str, ...]
    cwd: str
    environ: Mapping[str, str] = field(repr=False)
    pty: bool = False
    box: Box | None = None  # the sandbox it runs in
    notify: bool = False
    watch: tuple[str, ...] = ()
    role: Role = Role.GUEST  # of the turn that starts it; what it says begins turns of the same role


class BackgroundProcesses(ProcessList, Protocol):
    """What an agent can do with processes. Each call raises HermesErrors only."""

    async def start(self, order: ProcessOrder) -> ProcessView: ...
    async def write(self, process: str, data: bytes) -> int: ...
    def typed(self, process: str) -> str:
        """What was sent to it since the last newline; nothing for one that is not known. Blocking: for gates."""

    async def close_input(self, process: str) -> None: ...
    async def wait(self, process: str, timeout_s: float) -> ProcessView:
        """How it is when it has ended, which its conversation hears by this; or after that time."""


class NetworkedProcesses(Protocol):
    async def networked(self) -> tuple[Handle, ...]:
        """Those that run in a sandbox with a network."""


class ProcessHost(Protocol):
    """The machine that they run on. Everything here blocks, and is for threads."""

    def start(self, spec: ProcessSpec) -> Handle | FailedStart: ...
    def find(self, name: str) -> Handle | Lost: ...
    def look(self, handle: Handle) -> Heartbeat: ...
    def look_all(self, handles: Sequence[Handle]) -> dict[str, Heartbeat]: ...
    def ports(self, handles: Sequence[Handle]) -> dict[str, tuple[int, ...]]: ...
    def output(self, handle: Handle, offset: int, limit: int) -> Chunk: ...
    def tail(self, handle: Handle, limit: int) -> Chunk: ...
    def write(self, handle: Handle, data: bytes) -> int: ...
    def typed(self, name: str) -> bytes: ...
    def close_input(self, handle: Handle) -> None: ...
    def kill(self, handle: Handle, grace_s: float = 2.0, why: str = "") -> bool: ...
    def end_fd(self, handle: Handle) -> int | None: ...
    def forget(self, handle: Handle | Lost) -> None: ...
