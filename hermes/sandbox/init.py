"""Process 1 of a sandbox, found from outside."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from hermes.processes.shim.member import children, look_at

_POLL_S: Final = 0.01


def find_init(monitor: int, within_s: float) -> int | None:
    """The init of the sandbox below this process. Blocking. None: the monitor ended, or started none in time.

    What becomes bubblewrap may have other children first, which share the daemon's namespaces: they are not it.
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
    """Whether it has the number 1 in a process namespace below ours."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError:  # it ended meanwhile
        return False
    numbers = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])
    return len(numbers) > 1 and numbers[-1] == "1"
