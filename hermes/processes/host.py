"""Background processes on this machine: start, adoption, heartbeats and stop.

All calls block: call them in threads. Only `start` (for the shim's report), `write` and `wait` (up to their timeout)
wait for long. All state is in the processes' folders and in the kernel, so a host has only a cache, and the next
daemon sees the same.

A process is touched only after its pid was seen to belong to it (`identity`), and never from a copy of its folder:
the home that was copied may still run it. A shim that was killed cannot report how its command ended. That process is
lost, and the rest of it is ended.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from hermes.domain.process.process import (
    Chunk,
    EndReason,
    FailedStart,
    Handle,
    Lost,
    ProcessEnd,
    ProcessSample,
    ProcessSpec,
)
from hermes.ports.processes import ProcessHost
from hermes.processes.folder import (
    awaited_state,
    is_its_folder,
    note_kill,
    read_end,
    read_output,
    read_state,
    segment_stat,
    segments,
    shim_error,
)
from hermes.processes.identity import (
    collect,
    end_lost,
    is_shim,
    is_shim_alive,
    running_pid,
    shim_fd,
    signal_shim,
)
from hermes.processes.launch import STARTED, launch
from hermes.processes.shim.member import boot_id
from hermes.processes.table import TICKS_PER_S, ProcessTable, is_alive, listening_ports, machine_uptime_s, scan
from hermes.processes.typed import note_typed, read_typed, unfinished


class LinuxProcessHost(ProcessHost):
    def __init__(self, root: Path) -> None:
        self._root = root
        self._segments: dict[str, int] = {}  # last known segment of each process's output

    def start(self, spec: ProcessSpec) -> Handle | FailedStart:
        """Start a command. Returns when it runs or failed to start; never leaves a half-started process."""
        if spec.id != Path(spec.id).name or spec.id == "..":
            return FailedStart(reason=f"{spec.id!r} cannot name a folder")
        folder = self._root / spec.id
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)
            report = launch(spec, folder)
            state = read_state(folder) if report == STARTED else None
        except (OSError, ValueError) as error:
            if not isinstance(error, FileExistsError):  # then the folder belongs to another process
                shutil.rmtree(folder, ignore_errors=True)
            return FailedStart(reason=str(error))
        if state is None:
            reason = report or shim_error(folder) or "the shim died before it could start the command"
            shutil.rmtree(folder, ignore_errors=True)
            return FailedStart(reason=reason)
        return state

    def stored(self) -> tuple[str, ...]:
        """Return the ids of all processes that have a folder."""
        try:
            return tuple(sorted(entry.name for entry in os.scandir(self._root) if entry.is_dir()))
        except FileNotFoundError:
            return ()

    def running(self) -> dict[str, int]:
        """Return the pids to signal to end the processes that run, by process id. Changes nothing."""
        states = (read_state(self._root / name) for name in self.stored())
        pids = {state.id: running_pid(state) for state in states if state is not None and is_its_folder(state)}
        return {name: pid for name, pid in pids.items() if pid is not None}

    def adopt(self, folder: Path) -> Handle | Lost:
        """Return the handle of a process of an earlier daemon, which may have ended since."""
        handle = awaited_state(folder)
        if handle is None:
            return Lost(id=folder.name, reason=shim_error(folder) or "it was never seen to start")
        if read_end(handle) is not None:
            return handle
        if not is_its_folder(handle):
            return Lost(id=handle.id, reason="this is a copy of its folder: it belongs to another home")
        if is_shim_alive(handle):
            return handle
        return Lost(id=handle.id, reason=end_lost(handle))

    def find(self, name: str) -> Handle | Lost:
        """Adopt a process by its id."""
        return self.adopt(self._root / name)

    def look(self, handle: Handle) -> ProcessSample:
        if not is_shim_alive(handle):  # many may end together; do not scan all processes for each
            return self._sample(handle, None, "", None)
        return self.look_all((handle,))[handle.id]

    def look_all(self, handles: Sequence[Handle]) -> dict[str, ProcessSample]:
        """Return heartbeats by process id. One pass over all processes serves any number of handles."""
        table = scan()
        boot = boot_id()
        uptime_s = machine_uptime_s()
        return {handle.id: self._sample(handle, table, boot, uptime_s) for handle in handles}

    def ports(self, handles: Sequence[Handle]) -> dict[str, tuple[int, ...]]:
        """Return the TCP ports on which each process listens, by id. Too expensive for every heartbeat."""
        table = scan()
        if table is None:
            return {handle.id: () for handle in handles}
        boot = boot_id()
        pids = {
            handle.id: [member.pid for member in table.below(handle.shim_pid)]
            for handle in handles
            if is_shim(table, handle, boot)
        }
        open_at = listening_ports({pid for each in pids.values() for pid in each})
        return {
            handle.id: tuple(sorted({port for pid in pids.get(handle.id, ()) for port in open_at[pid]}))
            for handle in handles
        }

    def output(self, handle: Handle, offset: int, limit: int) -> Chunk:
        """Return at most `limit` bytes from `offset`, or from the first byte that is still kept."""
        total, _ = self._written(handle)
        size = handle.segment_bytes
        first = max(0, (total - 1) // size - 1)
        while True:
            at = min(max(offset, first * size), total)
            data = read_output(handle, at, min(limit, total - at))
            if data is not None:
                return Chunk(offset=at, data=data, total=total, kept_from=min(first * size, total))
            # A segment was rotated away or deleted: continue with the next one that exists, if any.
            total, _ = self._written(handle)
            first = min((number for number in segments(handle) if number > at // size), default=total // size + 1)

    def tail(self, handle: Handle, limit: int) -> Chunk:
        total, _ = self._written(handle)
        return self.output(handle, max(0, total - limit), limit)

    def write(self, handle: Handle, data: bytes, timeout_s: float = 2.0) -> int:
        """Write input and return the number of accepted bytes. Raises BrokenPipeError if the input is closed."""
        deadline = time.monotonic() + timeout_s
        folder = Path(handle.folder)
        before = read_typed(folder)
        with ExitStack() as held:
            fifo = _open_input(handle)
            held.callback(os.close, fifo)
            note_typed(folder, unfinished(before, data))
            poller = select.poll()
            poller.register(fifo, select.POLLOUT)
            sent = 0
            while sent < len(data) and poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
                with suppress(BlockingIOError):
                    sent += os.write(fifo, data[sent : sent + select.PIPE_BUF])
            if sent < len(data):
                note_typed(folder, unfinished(before, data[:sent]))
            return sent

    def typed(self, name: str) -> bytes:
        """Return the input sent since the last newline."""
        return read_typed(self._root / name) if name == Path(name).name else b""

    def close_input(self, handle: Handle) -> None:
        """Close the input. Earlier input is still read; a terminal gets an end of input."""
        signal_shim(handle, signal.SIGUSR1)

    def kill(self, handle: Handle, grace_s: float = 2.0, why: str = "") -> bool:
        """End a process and all that it started: SIGTERM, and SIGKILL after `grace_s`. Does not wait.

        A second call ends the grace of the first. Return False if the process had ended.
        """
        with suppress(OSError):  # deleted, or a full disk: the default grace applies
            Path(handle.folder, "grace").write_text(str(grace_s))
        note_kill(handle, why)
        return signal_shim(handle, signal.SIGTERM, signal.SIGCONT)

    def end_fd(self, handle: Handle) -> int | None:
        """Return a descriptor that becomes readable at the process's end; the caller closes it. None: poll instead.

        The end is stored before that, so a heartbeat taken then contains it.
        """
        return shim_fd(handle)

    def forget(self, handle: Handle | Lost) -> None:
        """Delete the process's folder. A running process must be stopped first."""
        folder = self._root / handle.id
        if isinstance(handle, Handle) and is_shim_alive(handle):
            raise ValueError(f"process {handle.id} is still running")
        shutil.rmtree(folder, ignore_errors=True)
        self._segments.pop(handle.id, None)

    def _sample(self, handle: Handle, table: ProcessTable | None, boot: str, uptime_s: float | None) -> ProcessSample:
        alive = is_shim(table, handle, boot) if table is not None else is_shim_alive(handle)
        end = None if alive else self._end(handle)
        total, written_at = self._written(handle)
        if not alive or table is None:
            return ProcessSample(alive=alive, output_bytes=total, last_output_at=written_at, end=end)
        below = table.below(handle.shim_pid)
        if handle.boxed:  # monitor and init belong to the sandbox, not to the command
            below = [member for member in below if handle.pid not in (member.pid, member.parent)]
        living = [member for member in below if is_alive(member)]
        watching = table.get(handle.shim_pid)
        ticks = sum(member.cpu + member.cpu_of_dead for member in below) + (watching.cpu_of_dead if watching else 0)
        return ProcessSample(
            alive=True,
            output_bytes=total,
            last_output_at=written_at,
            cpu_s=ticks / TICKS_PER_S,
            rss_bytes=sum(member.resident for member in living),
            processes=len(living),
            age_s=None if uptime_s is None else max(0.0, uptime_s - handle.started_ticks / TICKS_PER_S),
        )

    def _end(self, handle: Handle) -> ProcessEnd:
        collect(handle)
        end = read_end(handle)
        if end is not None:
            return end
        total, _ = self._written(handle)
        return ProcessEnd(reason=EndReason.LOST, output_bytes=total, detail=end_lost(handle))

    def _written(self, handle: Handle) -> tuple[int, float | None]:
        """Return the size of the output, and the time of the last write by the machine's clock."""
        number = self._segments.get(handle.id, 0)
        found = segment_stat(handle, number)
        while found is None or found.st_size >= handle.segment_bytes:
            last = max(segments(handle), default=None)
            if last is None:
                return 0, None
            if last == number:
                break  # full and the last one, or not readable
            number, found = last, segment_stat(handle, last)
        self._segments[handle.id] = number
        total = number * handle.segment_bytes + (found.st_size if found else 0)
        return total, found.st_mtime if found and total else None


def _open_input(handle: Handle) -> int:
    try:
        return os.open(Path(handle.folder, "stdin"), os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:  # no file: closed; no reader: the command closed it, or ended
        raise BrokenPipeError(f"the input of process {handle.id} is closed") from error
