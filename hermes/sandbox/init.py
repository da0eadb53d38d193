"""Search for process 1 of a sandbox from outside."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from hermes.processes.shim.member import children, look_at

_POLL_S: Final = 0.01


def find_init(monitor: int, within_s: float) -> int | None:
    """Return the pid of the init below `monitor`; None if the monitor ended or started none in time. Blocking.

    The process that becomes bubblewrap may have other children first. Those share the daemon's namespaces.
    """
    deadline = time.monotonic() + within_s
    while True:
        for child in children(monitor):
            if _leads_a_namespace(child):
                return child
        member = look_at(monitor)
        if member is None or member.state in (b"Z", b"X") or time.monotonic() >= deadline:
            return None
        time.sleep(_POLL_S)


def _leads_a_namespace(pid: int) -> bool:
    """Return whether the process is process 1 of a process namespace below ours."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError:  # it has ended
        return False
    numbers = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])
    return len(numbers) > 1 and numbers[-1] == "1"
