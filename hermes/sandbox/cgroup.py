"""Control groups (cgroup v2) that limit sandboxed commands: one for each command, removed after its end.

A shell enters the group and then becomes bubblewrap: no process of the sandbox is ever outside of it. The group to
make them in comes from `delegation`. All functions that touch the tree block: call them in a thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from loguru import logger

from hermes.domain.process.sandbox_launch import Box
from hermes.domain.values import dataclass, replace

_BOX: Final = "box-"
_KEEPERS: Final = 3  # bubblewrap's monitor and init, and the keeper
_ENTER: Final = 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"'
_OPTIONAL: Final = {  # a kernel may lack them
    "memory.swap.max": "0",
    "memory.oom.group": "1",
    "cpu.weight": "20",  # the daemon has the kernel's default, 100
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """Limits of one command with all that it starts."""

    memory_bytes: int
    processes: int

    def values(self) -> dict[str, str]:
        return {"memory.max": str(self.memory_bytes), "pids.max": str(self.processes + _KEEPERS)}


class Tree:
    """Writes to the cgroup file system."""

    def write(self, path: Path, text: str) -> None:
        path.write_text(text)

    def remove(self, group: Path) -> None:
        """Remove a group. Raises OSError while it has processes."""
        group.rmdir()


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlGroup:
    path: Path

    def entered_by(self, box: Box) -> Box:
        return replace(box, prefix=("/bin/sh", "-c", _ENTER, "group", str(self.path), *box.prefix))

    def ran_out_of_memory(self) -> bool:
        """Return whether the kernel killed a process of the group because of the memory limit."""
        try:
            events = dict(line.split() for line in (self.path / "memory.events").read_text().splitlines())
        except (OSError, ValueError):
            return False
        return events.get("oom_kill", "0") != "0"


class Cgroups:
    """Control groups below a delegated one. Thread-safe."""

    def __init__(self, base: Path, limits: GroupLimits, *, new_id: Callable[[], str], tree: Tree) -> None:
        self.limits = limits
        self._base = base
        self._new_id = new_id
        self._tree = tree
        self._held: set[Path] = set()  # reserved or in use; all others are removed when empty
        self._lock = threading.Lock()

    def make(self) -> ControlGroup | None:
        """Return a new group with its limits, or None (logged) if it could not be made."""
        path = self._base / f"{_BOX}{self._new_id()}"
        with self._lock:
            self._sweep()
            try:
                path.mkdir()
                self._held.add(path)
                for name, value in self.limits.values().items():
                    self._tree.write(path / name, value)
            except OSError as error:
                logger.warning("sandbox: could not make a control group, only rlimits hold: {}", error)
                self._held.discard(path)
                return None
        for name, value in _OPTIONAL.items():
            with suppress(OSError):
                self._tree.write(path / name, value)
        return ControlGroup(path=path)

    def release(self, group: ControlGroup, *, kill: bool) -> None:
        """Remove a group now, or in a later call once it is empty. `kill` ends all its processes first."""
        if kill:
            with suppress(OSError):  # removed already, or a kernel before 5.14
                self._tree.write(group.path / "cgroup.kill", "1")
        with self._lock:
            self._held.discard(group.path)
            self._sweep()

    def _sweep(self) -> None:
        for path in self._base.glob(f"{_BOX}*"):
            if path not in self._held:
                with suppress(OSError):  # a background command runs in it
                    self._tree.remove(path)


@asynccontextmanager
async def held_group(cgroups: Cgroups | None, *, stays: bool = False) -> AsyncIterator[ControlGroup | None]:
    """Hold a group for one command. `stays`: the command runs on, and a later call removes the group."""
    group = None if cgroups is None else await asyncio.to_thread(cgroups.make)
    try:
        yield group
    finally:
        if group is not None and cgroups is not None:
            await asyncio.shield(asyncio.to_thread(cgroups.release, group, kill=not stays))
