"""Process host whose processes end with the test, and queries of the process table."""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

from hermes.domain.process.process import FailedStart, Handle, ProcessEnd, ProcessLimits, ProcessSpec
from hermes.processes.host import LinuxProcessHost
from hermes.processes.identity import is_shim_alive, signal_group
from hermes.processes.shim.member import look_at
from tests.support.waiting import eventually

ENVIRON = {"PATH": os.environ["PATH"]}
PATIENCE_S = 30.0


def process_id(root: Path, number: int) -> str:
    """Return an id that no other test uses: leftovers of a process are found by its id on the whole machine."""
    return f"proc_{hashlib.sha256(str(root).encode()).hexdigest()[:12]}_{number}"


class ProcessFixture(LinuxProcessHost):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.root = root

    def run(
        self,
        *argv: str,
        terminal: bool = False,
        limits: ProcessLimits | None = None,
        environ: dict[str, str] | None = None,
    ) -> Handle:
        spec = ProcessSpec(
            id=process_id(self.root, len(self.stored())),
            argv=argv,
            cwd="/",
            environ=ENVIRON if environ is None else environ,
            terminal=terminal,
            limits=limits or ProcessLimits(),
        )
        started = self.start(spec)
        assert not isinstance(started, FailedStart), started.reason
        return started

    def signal(self, handle: Handle, number: int) -> bool:
        """Send a signal to the command's group. False when the shim is gone."""
        return is_shim_alive(handle) and signal_group(handle, number)

    def wait(self, handle: Handle, timeout_s: float) -> ProcessEnd | None:
        """Return how it ended, or None when it has not ended in time."""
        deadline = time.monotonic() + timeout_s
        while is_shim_alive(handle):
            if time.monotonic() >= deadline:
                return None
            time.sleep(0.01)
        return self._end(handle)

    def ended(self, handle: Handle) -> ProcessEnd:
        end = self.wait(handle, PATIENCE_S)
        assert end is not None, "it has not ended in time"
        return end

    def all_output(self, handle: Handle) -> bytes:
        return self.output(handle, 0, 10**9).data

    def until_output(self, handle: Handle, text: bytes) -> None:
        eventually(lambda: text in self.all_output(handle))

    def clear(self) -> None:
        for name in self.stored():
            handle = self.adopt(self.root / name)
            if isinstance(handle, Handle) and self.kill(handle, 0):
                self.ended(handle)


def alive(pid: int) -> bool:
    member = look_at(pid)
    return member is not None and member.state not in (b"Z", b"X")


def sleeps(pid: int) -> bool:
    """Return whether a process sleeps: then it has loaded all that it needs."""
    member = look_at(pid)
    return member is not None and member.state == b"S"


def asleep(mark: str) -> int:
    """Return the number of processes that have become `sleep MARK`."""
    found = 0
    for pid in with_argument(mark):
        with suppress(OSError):  # it has ended
            found += Path(f"/proc/{pid}/cmdline").read_bytes() == f"sleep\0{mark}\0".encode()
    return found


def with_argument(text: str) -> list[int]:
    """Return the running processes with this text in their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (entry / "cmdline").read_bytes() and alive(int(entry.name)):
                found.append(int(entry.name))
        except OSError:
            continue
    return found
