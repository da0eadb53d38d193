"""Child process in its own session and process group: start, end and limits.

A guard, a few lines of shell, runs between the daemon and the program. It starts a watcher that reads from a pipe
whose other end only this process holds. If the daemon dies, the pipe closes and the watcher kills the group. The
kernel's parent-death signal would reach only the first process, and exists only on Linux.
The guard waits for the program, reaps the watcher and repeats the exit code. The program inherits its input, its
output and, for errors, its output again, and the descriptors that are passed to it by name.

Nothing runs between fork and exec in this process, limits are set by the shell itself (`limit_commands`), and the
group is never signalled once it was seen to be empty: its number may belong to others by then.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from io import FileIO
from pathlib import Path
from typing import Final, cast

from hermes.domain.values import dataclass

_MIN_POLL_S: Final = 0.005
_MAX_POLL_S: Final = 0.08
_BUFFER_BYTES: Final = 2**19
_END_OF_INPUT: Final = b"\x04"  # what Ctrl-D sends
_TERMINAL_SIZE: Final = (40, 120)
_FIRST_DESCRIPTOR: Final = 10  # a shell uses those below itself

# Descriptors: 3 the pipe to the daemon, 4 the output for errors, 5 the program's input. The guard itself is silent: a
# shell would report the program's death by a signal. Signals that it catches are set back for the program.
_GUARD: Final = """
exec 3<&0 0</dev/null 4>&2 2>/dev/null 5<>"$1"; shift
trap : HUP INT QUIT TERM
{ trap '' HUP INT QUIT TERM; read -r _ <&3; kill -s TERM 0; sleep 2; kill -s KILL 0; } >/dev/null 4>&- 5<&- &
(exec "$@" 0<&5 2>&4 3<&- 4>&- 5<&-)
code=$?
kill -s KILL $!; wait $!; exit $code
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildLimits:
    """Resource limits of a command. Zero means no limit; core files are never written."""

    file_bytes: int = 10 * 2**30  # of a single file
    open_files: int = 4096
    memory_bytes: int = 0  # address space of each process; many programs reserve far more than they use
    data_bytes: int = 0  # heap of each process
    user_processes: int = 0  # of the whole user, threads too; in a sandbox, of the sandbox. Not for root
    cpu_s: int = 0  # of each process
    processes: int = 512  # of one command; checked periodically


def is_bash(shell: str) -> bool:
    return Path(shell).name == "bash"


def limit_commands(limits: ChildLimits, *, bash: bool) -> str:
    """Return shell commands that set hard limits. A limit above this process's own has no effect."""
    wanted = {
        "f": limits.file_bytes // (1024 if bash else 512),
        "n": limits.open_files,
        "v": limits.memory_bytes // 1024,
        "d": limits.data_bytes // 1024,
        "u" if bash else "p": limits.user_processes,
        "t": limits.cpu_s,
    }
    return " ".join(["ulimit -c 0;", *(f"ulimit -{name} {most};" for name, most in wanted.items() if most)])


class Output(asyncio.Protocol):
    """Bounded buffer of a child's unread output: a child that writes faster than its reader has to wait.

    A terminal ends with an error instead of an end of file. Output before that error is kept.
    """

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._changed = asyncio.Event()
        self._ended = False
        self._transport: asyncio.ReadTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._waiting += data
        self._changed.set()
        if len(self._waiting) >= _BUFFER_BYTES and self._transport is not None:
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - every end is handled alike
        self._ended = True
        self._transport = None
        self._changed.set()

    async def read(self) -> bytes:
        while not self._waiting and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        data = bytes(self._waiting)
        self._waiting.clear()
        if self._transport is not None:
            self._transport.resume_reading()  # a no-op when it was not paused
        return data

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class ChildProcess:
    """A running program and its process group. The owner must `close` it."""

    def __init__(self, process: Process, output: Output, held: ExitStack) -> None:
        self.group = process.pid
        self._process = process
        self._output = output
        self._held = held  # our ends of its output and of the pipe that the watcher reads
        self._empty = False

    async def read(self) -> bytes:
        """Return the next output, including standard error; empty at the end."""
        return await self._output.read()

    async def wait(self) -> int:
        """Return the program's exit code; 128 plus the signal's number if a signal ended it."""
        code = await self._process.wait()
        return code if code >= 0 else 128 - code

    def signal(self, number: int) -> bool:
        """Send a signal to the whole group. Return False if the group is empty."""
        if not self._empty:
            try:
                os.killpg(self.group, number)
            except (ProcessLookupError, PermissionError):  # gone; or all that is left runs as another user
                self._empty = True
        return not self._empty

    async def emptied(self, within_s: float) -> bool:
        """Return whether the whole group ended by itself in time."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        pause_s = _MIN_POLL_S
        while self.signal(0) or await self.members():
            if loop.time() >= deadline:
                return False
            due_at = loop.time() + pause_s
            await asyncio.sleep(pause_s)
            deadline += max(0.0, loop.time() - due_at)  # time while the machine was suspended does not count
            pause_s = min(2 * pause_s, _MAX_POLL_S)
            if pause_s == _MAX_POLL_S and await self.members() == []:
                self._empty = True  # only zombies are left
        return True

    async def stop(self, grace_s: float) -> None:
        """Stop the whole group: SIGTERM first, then SIGKILL."""
        try:
            self.signal(signal.SIGTERM)
            await asyncio.to_thread(_signal_session, self.group, signal.SIGTERM)
            await self.emptied(within_s=grace_s)
        finally:  # also when the caller is cancelled
            self.signal(signal.SIGKILL)
            await asyncio.shield(asyncio.to_thread(_signal_session, self.group, signal.SIGKILL))
        await self._process.wait()

    async def members(self) -> list[str] | None:
        """Return the names of its running processes, also in other groups of its session; None if unknown."""
        found = await asyncio.to_thread(_members, self.group)
        return None if found is None else [name for _, name in found]

    def ended_with_it(self) -> list[str]:
        """Return the names of processes that outlived the program and were killed by its sandbox."""
        return []

    def close(self) -> None:
        """Kill what still runs and stop reading."""
        self.signal(signal.SIGKILL)
        self._held.close()


async def spawn(
    argv: Sequence[str],
    *,
    shell: str,
    cwd: str,
    environ: Mapping[str, str],
    terminal: bool,
    pass_fds: Sequence[int] = (),
) -> ChildProcess:
    """Start a program with empty input, or on its own terminal without a user. Raises OSError.

    `shell` is the guard's: bash or sh. The latter may drop variables whose names it does not accept.
    """
    # With -p bash ignores functions, options and start-up files of its environment, but passes all of it on.
    guard = (shell, "-p") if is_bash(shell) else (shell,)
    with ExitStack() as theirs, ExitStack() as ours:
        watched, lifeline = os.pipe()
        theirs.callback(os.close, watched)
        ours.callback(os.close, lifeline)
        source, sink = os.openpty() if terminal else os.pipe()
        theirs.callback(os.close, sink)
        output = await connected(ours.enter_context(os.fdopen(source, "rb", buffering=0)))
        ours.callback(output.close)
        if terminal:
            prepare_terminal(source)
        process = await asyncio.create_subprocess_exec(
            *(*guard, "-c", _GUARD, "guard", os.ttyname(sink) if terminal else os.devnull, *argv),
            cwd=cwd,
            env=environ,
            stdin=watched,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            pass_fds=pass_fds,
        )
        return ChildProcess(process, output, ours.pop_all())


def fixed_file(held: ExitStack, size: int) -> int:
    """Return an in-memory file of fixed size, filled with zeros, that a child inherits and can write."""
    descriptor = os.memfd_create("hermes", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
    os.close(descriptor)
    held.callback(os.close, high)
    os.ftruncate(high, size)
    fcntl.fcntl(high, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
    return high


async def connected(source: FileIO) -> Output:
    _, output = await asyncio.get_running_loop().connect_read_pipe(Output, source)
    return output


def prepare_terminal(keyboard: int) -> None:
    import termios  # noqa: PLC0415 - not on every system, and rarely needed

    termios.tcsetwinsize(keyboard, _TERMINAL_SIZE)
    os.write(keyboard, _END_OF_INPUT)  # a program that asks a question reads the end of input


def _members(session: int) -> list[tuple[int, str]] | None:
    """Return ids and names of a session's processes; None if unknown.

    A shell with job control (set -m) gives each job its own group, so the session is compared.
    """
    if not Path("/proc/self/stat").exists():
        return None
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            before, _, after = entry.read_text(errors="replace").rpartition(")")
            state, _, _, its_session = after.split()[:4]
            if int(its_session) == session and state not in "ZX":
                pid, _, name = before.partition("(")
                found.append((int(pid), name))
    return found


def _signal_session(session: int, number: int) -> None:
    for pid, _ in _members(session) or ():
        with suppress(ProcessLookupError, PermissionError):  # gone, or another user's
            os.kill(pid, number)


def threads_on_this_machine() -> int:
    """Return the kernel's count of threads, which is cheap to read; zero if it is not available."""
    try:
        return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return 0
