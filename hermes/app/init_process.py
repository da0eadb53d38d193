"""Being process 1, as in a container: pass signals on, bury orphans, end as the daemon ends.

To process 1 come the orphans of the whole container, and signals that it does not handle are not delivered to it.
So the daemon does not take that place itself: it goes on in a child, where nothing is different, and process 1 does
this and no more. The daemon's own children are never waited for here, only those that have lost their parent.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Final, NoReturn

_BY_THE_KERNEL: Final = 0x80  # SI_KERNEL: a key on the terminal, which the daemon, in the same group, gets as well
_NOT_HELD_BACK: Final = {
    signal.SIGKILL, signal.SIGSTOP,  # cannot be
    signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS,  # are our own faults
}  # fmt: skip


def leave_process_1() -> None:
    """Returns in a child, unless this is any other process; process 1 itself does not come back from here."""
    if os.getpid() != 1 or sys.platform != "linux":
        return
    from hermes.app.os_process import hide_from_children  # noqa: PLC0415 - its imports are shared with the child

    hide_from_children()  # from those of the daemon: process 1 was started with the same environment
    held = signal.valid_signals() - _NOT_HELD_BACK
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    daemon = os.fork()
    if daemon:
        _watch_over(daemon, held)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _watch_over(daemon: int, held: set[signal.Signals]) -> NoReturn:
    while True:
        told = signal.sigwaitinfo(held)
        if told.si_signo == signal.SIGCHLD:
            _bury(daemon)
        elif told.si_code != _BY_THE_KERNEL:
            os.kill(daemon, told.si_signo)  # its number is its own until it is buried


def _bury(daemon: int) -> None:
    """Everyone who has ended. With the daemon this process ends too, and the kernel ends whatever is left."""
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
