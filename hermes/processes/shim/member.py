"""Reader of process information in /proc, for shims and the daemon."""

# ruff: noqa: PTH208 - pathlib would be loaded by every shim

from __future__ import annotations

import os

_PAGE = os.sysconf("SC_PAGE_SIZE")


class Member:
    """One process, parsed from /proc/PID/stat."""

    __slots__ = ("cpu", "cpu_of_dead", "group", "name", "parent", "pid", "resident", "started", "state")

    def __init__(self, pid: int, stat: bytes) -> None:
        name, _, rest = stat.rpartition(b")")
        fields = rest.split()
        self.pid = pid
        self.name = name.partition(b"(")[2].decode("utf-8", "replace")
        self.state = fields[0]
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.cpu = int(fields[11]) + int(fields[12])
        self.cpu_of_dead = int(fields[13]) + int(fields[14])  # children it has reaped
        self.started = int(fields[19])
        self.resident = int(fields[21]) * _PAGE


def look_at(pid: int) -> Member | None:
    try:
        return Member(pid, whole(f"/proc/{pid}/stat"))
    except (OSError, IndexError):  # it has ended; or not Linux
        return None


def children(pid: int) -> list[int]:
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += [int(child) for child in whole(f"/proc/{pid}/task/{thread}/children").split()]
    except OSError:  # it, or its thread, has ended
        pass
    return found


def below(pid: int) -> list[int]:
    """Return the pids of all descendants."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        more = children(waiting.pop())
        found += more
        waiting += more
    return found


def proportional(member: Member) -> int:
    """Return the memory of a process, with shared pages divided among their users (PSS). Expensive to read."""
    try:
        for line in whole(f"/proc/{member.pid}/smaps_rollup").splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return member.resident


def whole(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return b"".join(iter(lambda: os.read(descriptor, 65536), b""))
    finally:
        os.close(descriptor)


def boot_id() -> str:
    try:
        return whole("/proc/sys/kernel/random/boot_id").decode().strip()
    except OSError:
        return ""
