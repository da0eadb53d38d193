"""Init process of a container: forwards signals, reaps orphans, exits with the daemon's exit code.

Process 1 inherits all orphans of the container, and does not receive signals that it does not handle. So the daemon
runs in a child, and process 1 does only this. It reaps the daemon and orphans, never the daemon's own children.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Final, NoReturn

_FROM_KERNEL: Final = 0x80  # SI_KERNEL: a key on the terminal; the daemon is in the same group and receives it too
_NOT_BLOCKED: Final = {
    signal.SIGKILL, signal.SIGSTOP,  # cannot be blocked
    signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS,  # own faults
}  # fmt: skip


def leave_process_1() -> None:
    """Fork if this is process 1. Returns in the child and in any other process; process 1 stays in here."""
    if os.getpid() != 1 or sys.platform != "linux":
        return
    from hermes.app.host.os_process import hide_from_children  # noqa: PLC0415 - its imports are shared with the child

    hide_from_children()  # process 1 has the same environment as the daemon
    blocked = signal.valid_signals() - _NOT_BLOCKED
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    daemon = os.fork()
    if daemon:
        _supervise(daemon, blocked)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _supervise(daemon: int, blocked: set[signal.Signals]) -> NoReturn:
    while True:
        received = signal.sigwaitinfo(blocked)
        if received.si_signo == signal.SIGCHLD:
            _reap(daemon)
        elif received.si_code != _FROM_KERNEL:
            os.kill(daemon, received.si_signo)  # its pid is not reused before it is reaped


def _reap(daemon: int) -> None:
    """Reap every dead child. When the daemon has ended, exit; the kernel then ends all other processes."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid == daemon:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)  # as a shell reports a signal
