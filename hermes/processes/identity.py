"""Identity of processes: signals are sent only to a pid that is still the same process.

A number belongs to a process of ours if the machine's boot and the kernel's start time are the same. That is checked
with a pidfd in the hand, so the number cannot change its owner between the check and the signal. Elsewhere than on
Linux a daemon knows only the processes that it has started itself; of others it can but read how they ended.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from hermes.domain.process.process import Handle
from hermes.processes.folder import complaint
from hermes.processes.shim.command import MARK
from hermes.processes.shim.member import boot_id, look_at, whole
from hermes.processes.table import ProcessTable, lives, pids

_ROUNDS: Final = 20
_ROUND_S: Final = 0.01


def is_shim(table: ProcessTable, handle: Handle, boot: str) -> bool:
    member = table.get(handle.shim_pid)
    same = member is not None and boot == handle.boot_id and member.started == handle.shim_started_ticks
    return same and lives(member)


def shim_lives(handle: Handle) -> bool:
    return boot_id() == handle.boot_id and _runs(handle.shim_pid, handle.shim_started_ticks)


def running_pid(handle: Handle) -> int | None:
    """Return the pid that ends the process by a signal: its shim's, or its command's if the shim is gone.

    None: it has ended.
    """
    if shim_lives(handle):
        return handle.shim_pid
    has_command = handle.started_ticks and boot_id() == handle.boot_id and _runs(handle.pid, handle.started_ticks)
    return handle.pid if has_command else None


def _runs(pid: int, started_ticks: int) -> bool:
    if not started_ticks:
        return _is_running_child(pid)
    member = look_at(pid)
    return member is not None and member.started == started_ticks and lives(member)


def _is_running_child(pid: int) -> bool:
    """Where the system tells no start times, a number is sure only to whoever will have to reap it."""
    if not hasattr(os, "waitid"):  # macOS
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, 0)
            return True
        return False
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def shim_fd(handle: Handle) -> int | None:
    try:
        descriptor = os.pidfd_open(handle.shim_pid)
    except (OSError, AttributeError):  # gone; or no such system
        return None
    if shim_lives(handle):  # and so it was when the descriptor was made
        return descriptor
    os.close(descriptor)
    return None


def tell_shim(handle: Handle, *numbers: int) -> bool:
    descriptor = shim_fd(handle)
    if descriptor is None:
        if hasattr(os, "pidfd_open") or not shim_lives(handle):
            return False
        for number in numbers:
            os.kill(handle.shim_pid, number)
        return True
    try:
        for number in numbers:
            signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def signal_group(handle: Handle, number: int) -> bool:
    """Only while its first process is there, dead or alive: so long the group's number is its own."""
    leader = look_at(handle.pid)
    sure = leader is not None and leader.started == handle.started_ticks and boot_id() == handle.boot_id
    if not sure and not (handle.started_ticks == 0 and shim_lives(handle)):
        return False
    try:
        os.killpg(handle.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def bury(handle: Handle) -> str:
    """End what runs on without its shim, and say why nothing is known."""
    if boot_id() != handle.boot_id:
        return "the machine was restarted while it ran"
    if not handle.started_ticks:
        return "this system does not tell whether it still runs"
    ran = signal_group(handle, signal.SIGKILL)
    ran = kill_marked(handle.id) or ran
    said = complaint(Path(handle.folder)) or "its shim was killed"
    return f"{said}; the command still ran and was ended" if ran else said


def kill_marked(name: str) -> bool:
    """What left the group is nobody's child any more; it bears the process's id in its environment."""
    mark = MARK + b"=" + os.fsencode(name)
    ran = False
    for _ in range(_ROUNDS):  # they may have started others meanwhile
        if not [pid for pid in pids() if _kill_if_marked(pid, mark)]:
            break
        ran = True
        time.sleep(_ROUND_S)
    return ran


def _kill_if_marked(pid: int, mark: bytes) -> bool:
    if not _bears(pid, mark):
        return False
    try:
        descriptor = os.pidfd_open(pid)
    except (OSError, AttributeError):
        return False
    try:
        if not _bears(pid, mark):  # with the descriptor in the hand the number is sure
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except OSError:  # gone, or somebody else's
        return False
    finally:
        os.close(descriptor)
    return True


def _bears(pid: int, mark: bytes) -> bool:
    try:
        return mark in whole(f"/proc/{pid}/environ").split(b"\0")
    except OSError:  # ended, or somebody else's
        return False


def collect(handle: Handle) -> None:
    """Without this a shim that this very daemon has started would stay in the process table."""
    member = look_at(handle.shim_pid)
    ours = member is not None and member.parent == os.getpid() and member.started == handle.shim_started_ticks
    if ours or handle.shim_started_ticks == 0:
        with suppress(ChildProcessError):  # another thread was faster
            os.waitpid(handle.shim_pid, os.WNOHANG)
