"""Processes of a shim's command: start, count, signal and reap them."""

# ruff: noqa: PLC0415, PTH109, PTH119, SIM105 - load rare modules where needed, and contextlib never

from __future__ import annotations

import os

from hermes.processes.shim.member import Member, children, look_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterator
else:
    import _signal as signal  # the public module builds enumerations: 0.8 MB

ORDER = b"hermes-process 3"
MARK = b"HERMES_PROCESS"  # environment variable with the process id; finds processes whose shim is gone
_RESTORED = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGPIPE", "SIGXFSZ", "SIGTERM", "SIGUSR1", "SIGCHLD")
_TERMINAL_SIZE = (40, 120)
BOX_FDS = (100, 101)  # bubblewrap's options and its filter; a test compares them with the sandbox's


class ShimOrder:
    """The daemon's order to run a command, as fields that end with NUL."""

    def __init__(self, raw: bytes) -> None:
        fields = raw.split(b"\0")
        if fields[0] != ORDER or fields[-1] != b"end":
            raise ValueError("the order is incomplete")
        numbers = [int(field) for field in fields[1:7]]
        self.terminal = bool(numbers[0])
        self.segment_bytes, self.memory_max, self.processes_max, self.output_max, count = numbers[1:]
        self.command_hash = fields[7].decode()
        # Contents of the two descriptors that a sandboxed program inherits. Empty without a sandbox.
        self.box = {
            number: bytes.fromhex(field.decode())
            for number, field in zip(BOX_FDS, fields[8:10], strict=True)
            if field
        }
        self.network = bool(fields[10])
        self.hosts = [host for host in fields[11].decode().split(",") if host]
        self.cwd = fields[12]
        self.argv = fields[13 : 13 + count]
        pairs = (field.partition(b"=") for field in fields[13 + count : -1])
        self.environ = {name: value for name, _, value in pairs} | {MARK: os.path.basename(os.getcwdb())}


class ShimCommand:
    def __init__(self, order: ShimOrder) -> None:
        self.order = order
        self.pid = 0
        self.ended: tuple[int | None, int | None] | None = None  # exit code or signal
        self.input = -1  # our side of the terminal, or the FIFO, which is only kept open
        self.output = -1

    def start(self) -> None:
        """Start the command. Raises OSError with the system's message."""
        if self.order.terminal:
            self.output, theirs = _terminal()
            self.input, stdin = self.output, theirs
        else:
            self.output, theirs = os.pipe()
            stdin = os.open("stdin", os.O_RDONLY | os.O_NONBLOCK)
            self.input = os.open("stdin", os.O_WRONLY)
            os.set_blocking(stdin, True)
        failed, failure = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._exec(stdin, theirs, failure)
        for descriptor in {stdin, theirs, failure}:
            os.close(descriptor)
        problem = b"".join(iter(lambda: os.read(failed, 4096), b""))
        os.close(failed)
        if problem:
            os.waitpid(self.pid, 0)
            raise OSError(problem.decode("utf-8", "replace"))
        os.set_blocking(self.output, False)

    def _exec(self, stdin: int, output: int, failure: int) -> None:
        """Execute the command in the forked process. Never returns."""
        where = self.order.cwd
        try:
            os.setsid()
            if self.order.terminal:
                import fcntl
                import termios

                fcntl.ioctl(output, termios.TIOCSCTTY, 0)
            for descriptor, source in enumerate((stdin, output, output)):
                os.dup2(source, descriptor)
            for name in _RESTORED:
                signal.signal(getattr(signal, name), signal.SIG_DFL)
            _raise_oom_score()
            for descriptor, content in self.order.box.items():
                _memory_file(descriptor, content)
            os.chdir(where)
            where = self.order.argv[0]
            os.execvpe(where, self.order.argv, self.order.environ)  # noqa: S606 - a shell is the caller's choice
        except OSError as error:
            os.write(failure, where + b": " + (error.strerror or str(error)).encode())
        except ValueError as error:
            os.write(failure, str(error).encode())
        finally:
            os._exit(127)

    def reap(self) -> list[int]:
        """Reap zombies, and return the running children of the shim: if there are none, the command is over."""
        if self.ended is None:
            self.ended = _how_it_ended(self.pid)
        left, gone = self._children()
        while self.ended is not None and gone and not left:
            left, gone = self._children()  # the shim may have adopted children of a process that just ended
        return left

    def _children(self) -> tuple[list[int], int]:
        """Return the running children, and the number of reaped ones."""
        left, gone = [], 0
        for child in children(os.getpid()):
            if child == self.pid:
                continue
            try:
                if os.waitpid(child, os.WNOHANG)[0] == 0:
                    left.append(child)
                else:
                    gone += 1
            except ChildProcessError:
                pass
        return left, gone

    def members(self) -> Iterator[Member]:
        """Yield all running processes of the command."""
        waiting, seen = [os.getpid()], set()
        while waiting:
            for pid in children(waiting.pop()):
                if pid not in seen:
                    seen.add(pid)
                    waiting.append(pid)
                    member = look_at(pid)
                    if member is not None and member.state not in (b"Z", b"X"):
                        yield member

    def signal(self, *numbers: int) -> None:
        """Send signals to the group, and to each process that left it.

        Any signal to a sandbox's monitor or init kills the whole sandbox. So only SIGKILL is sent to them; other
        signals go to the processes below them.
        """
        if self.order.box and signal.SIGKILL not in numbers:
            keepers = {self.pid, *children(self.pid)}
            for pid in [member.pid for member in self.members() if member.pid not in keepers]:
                for number in numbers:
                    send(os.kill, pid, number)
            return
        apart = [member.pid for member in self.members() if member.group != self.pid]
        for number in numbers:
            send(os.killpg, self.pid, number)
            for pid in apart:
                send(os.kill, pid, number)


def send(how: Callable[[int, int], None], target: int, number: int) -> None:
    try:
        how(target, number)
    except (ProcessLookupError, PermissionError):  # gone; or it runs as another user
        pass


def _memory_file(descriptor: int, content: bytes) -> None:
    made = os.memfd_create("sandbox")
    os.write(made, content)
    os.lseek(made, 0, os.SEEK_SET)
    os.dup2(made, descriptor, inheritable=True)
    os.close(made)


def _how_it_ended(pid: int) -> tuple[int | None, int | None] | None:
    """Return exit code or signal; None while it runs. The pid is not released, except without waitid (macOS)."""
    if not hasattr(os, "waitid"):
        waited, status = os.waitpid(pid, os.WNOHANG)
        code = os.waitstatus_to_exitcode(status)
        return None if not waited else (code, None) if code >= 0 else (None, -code)
    seen = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if seen is None:
        return None
    return (seen.si_status, None) if seen.si_code == os.CLD_EXITED else (None, seen.si_status)


def _terminal() -> tuple[int, int]:
    import termios

    ours, theirs = os.openpty()
    termios.tcsetwinsize(ours, _TERMINAL_SIZE)
    return ours, theirs


def _raise_oom_score() -> None:
    """Make the kernel kill the command first when memory runs out, not the shim or the daemon."""
    try:
        descriptor = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(descriptor, b"500")
        os.close(descriptor)
    except OSError:
        pass
