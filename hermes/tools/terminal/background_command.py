"""Request of the terminal tool to start a command in the background."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from hermes.domain.access.role import Role
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.process.sandbox_launch import Box
from hermes.domain.values import dataclass
from hermes.processes.child import ChildLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundCommand:
    """A command that outlives its tool call, with everything it needs to start."""

    session: SessionId
    turn: TurnId
    call: str
    folder: Path
    command: str
    cwd: str
    environ: Mapping[str, str] = field(repr=False)
    pty: bool
    limits: ChildLimits
    shell: str = "/bin/sh"
    box: Box | None = None  # the sandbox it runs in
    permitted: frozenset[str] = frozenset()  # approved rules, for its network
    notify: bool = False  # send a message when it ends
    watch: tuple[str, ...] = ()  # send a message when its output contains one of these
    role: Role = Role.GUEST  # of the turn that starts it
