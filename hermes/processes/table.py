"""Table of the machine's processes: their shims, their resource use, and the ports on which they listen.

One pass over /proc serves any number of background processes. On other systems than Linux `scan` returns None.
"""

# ruff: noqa: PTH115, PTH208 - thousands of paths every few seconds; strings cost a third

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from hermes.processes.shim.member import Member, look_at

_DEAD: Final = (b"Z", b"X")
_LISTENS: Final = "0A"
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


class ProcessTable:
    def __init__(self, members: Iterable[Member]) -> None:
        self._members = {member.pid: member for member in members}
        self._children: defaultdict[int, list[Member]] = defaultdict(list)
        for member in self._members.values():
            self._children[member.parent].append(member)

    def get(self, pid: int) -> Member | None:
        return self._members.get(pid)

    def below(self, pid: int) -> list[Member]:
        """Return all descendants of a process, zombies included. A shim is the parent of its orphans."""
        found: list[Member] = []
        waiting = [pid]
        while waiting:
            children = self._children.get(waiting.pop(), ())
            found += children
            waiting += (child.pid for child in children)
        return found


def scan() -> ProcessTable | None:
    if not Path("/proc/self/stat").exists():
        return None
    members = map(look_at, pids())
    return ProcessTable(member for member in members if member is not None)


def pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:  # not Linux
        return []


def machine_uptime_s() -> float | None:
    """Return the time since boot, including sleep. Start times of processes use the same clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else None


def is_alive(member: Member | None) -> bool:
    return member is not None and member.state not in _DEAD


def listening_ports(pids: Collection[int]) -> dict[int, set[int]]:
    """Return the TCP ports on which each process listens. Expensive: it reads every descriptor."""
    by_network: dict[str, dict[str, int]] = {}
    found = {}
    for pid in pids:
        network = _network_of(pid)  # a sandbox has its own
        if network not in by_network:
            by_network[network] = _listening_sockets(pid)
        sockets = by_network[network]
        found[pid] = {sockets[inode] for inode in _sockets_of(pid) if inode in sockets}
    return found


def _network_of(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:  # it has ended, or runs as another user
        return ""


def _listening_sockets(pid: int) -> dict[str, int]:
    found = {}
    for name in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
        except OSError:  # no such protocol here
            continue
        for fields in map(str.split, lines):
            if fields[3] == _LISTENS:
                found[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    return found


def _sockets_of(pid: int) -> Iterable[str]:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:  # it has ended, or runs as another user
        return
    for name in names:
        with suppress(OSError):  # it was closed
            target = os.readlink(f"{folder}/{name}")
            if target.startswith("socket:["):
                yield target[8:-1]
