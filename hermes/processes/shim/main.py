"""Main program of a shim."""

# ruff: noqa: PLC0415, SIM105, PTH116 - load modules that may be missing where they are used; avoid others

from __future__ import annotations

import os
import sys
import time

from hermes.processes.shim.command import ShimCommand, ShimOrder
from hermes.processes.shim.guard import LimitGuard
from hermes.processes.shim.member import boot_id, look_at
from hermes.processes.shim.status import remove, reserve_status, write_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


def main() -> None:
    raw, report = _detach()
    wakeup = _signals()
    os.chdir(sys.argv[1])
    _adopt_orphans()
    command = ShimCommand(ShimOrder(raw))
    os.mkfifo("stdin", 0o600)
    reserve_status("exit.json")
    guard = LimitGuard(command, wakeup)
    try:
        command.start()
    except OSError as error:
        os.write(report, str(error).encode())
        return
    try:
        write_status("state.json", _state(command), lasting=False)
        _report_started(report)
        guard.run()
    except BaseException:
        command.signal(signal.SIGKILL)  # it would run without a supervisor
        raise
    remove("stdin")
    write_status("exit.json", guard.exit_status(), lasting=True)
    if command.ended is not None:
        os.waitpid(command.pid, 0)


def _report_started(report: int) -> None:
    try:
        os.write(report, b"ok")
    except BrokenPipeError:
        pass  # the daemon died; the next one finds the folder
    os.close(report)


def _detach() -> tuple[bytes, int]:
    """Return the order and the descriptor for the report. Close all other descriptors of the daemon."""
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    if os.getsid(0) != os.getpid():
        os.setsid()
    raw = b"".join(iter(lambda: os.read(0, 65536), b""))
    report = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)
    return raw, report


def _signals() -> int:
    """Return a descriptor that delivers signals. Signals of the daemon's terminal are ignored."""
    out, into = os.pipe()
    os.set_blocking(out, False)
    os.set_blocking(into, False)
    signal.set_wakeup_fd(into, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    return out


def _adopt_orphans() -> None:
    try:
        import ctypes

        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass  # not Linux: processes that leave the group are not found


def _state(command: ShimCommand) -> dict[str, object]:
    running, shim = look_at(command.pid), look_at(os.getpid())
    return {
        "pid": command.pid,
        "started_ticks": running.started if running else 0,
        "shim_pid": os.getpid(),
        "shim_started_ticks": shim.started if shim else 0,
        "boot_id": boot_id(),
        "started_at": time.time(),
        "command_hash": command.order.command_hash,
        "terminal": int(command.order.terminal),
        "segment_bytes": command.order.segment_bytes,
        "boxed": int(bool(command.order.box)),
        "network": int(command.order.network),
        "hosts": command.order.hosts,
        "folder_inode": os.stat(".").st_ino,
    }
