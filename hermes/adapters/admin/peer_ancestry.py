"""Ancestry of a process: detects processes that a tool of the daemon started, directly or not.

The daemon is a subreaper, so a process whose parent has ended stays below the daemon. A background command stays
below its shim, even when the daemon that started the shim has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path

from hermes.domain.values import dataclass

OUTSIDE = 0  # pid of a process outside the daemon's PID namespace, which descendants cannot leave
_MAX_GENERATIONS = 64
_MAX_WALKS = 3  # an ancestor may end during a walk, which gives its children another parent
_SHIM = b"hermes.processes.shim.main"


class PeerAncestry(Enum):
    TOOL = "tool"
    OTHER = "other"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLook:
    parent: int
    started: int  # clock ticks since the machine booted
    has_ended: bool = False  # a zombie
    is_shim: bool = False


def look_at(pid: int) -> ProcessLook | None:
    """Read one process from /proc. None if it cannot be read."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        fields = stat.rpartition(b")")[2].split()
        return ProcessLook(
            parent=int(fields[1]),
            started=int(fields[19]),
            has_ended=fields[0] in b"ZX",
            is_shim=_SHIM in command,
        )
    except (OSError, ValueError, IndexError):
        return None


def descent_of(pid: int, daemon: int, look: Callable[[int], ProcessLook | None] = look_at) -> PeerAncestry:
    for _ in range(_MAX_WALKS):
        if (found := _walk(pid, daemon, look)) is not PeerAncestry.UNKNOWN:
            return found
    return PeerAncestry.UNKNOWN


def _walk(pid: int, daemon: int, look: Callable[[int], ProcessLook | None]) -> PeerAncestry:
    for _ in range(_MAX_GENERATIONS):
        if pid == daemon:
            return PeerAncestry.TOOL
        if pid in (1, OUTSIDE):
            return PeerAncestry.OTHER
        found = look(pid)
        if found is None:
            return PeerAncestry.UNKNOWN
        if found.is_shim:
            return PeerAncestry.TOOL
        pid = found.parent
    return PeerAncestry.UNKNOWN
