"""Guard of a running command: stores its output, passes its input on, and stops it at its limits."""

# ruff: noqa: SIM105 - contextlib would be loaded by every shim

from __future__ import annotations

import os
import select
import time

from hermes.processes.shim.command import ShimCommand, send
from hermes.processes.shim.member import Member, proportional, whole
from hermes.processes.shim.spool import Spool
from hermes.processes.shim.status import remove

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

_READ_BYTES = 2**16
_MAX_READ_BYTES = 2**22  # of output, before other events are served
_GRACE_S = 2.0
_LINGER_S = 0.5  # for processes that outlive the command
_GIVE_UP_S = 10.0  # after the first SIGKILL: the rest cannot be killed
_ENDING_POLL_S = 0.05
_MIN_INSPECT_S = 0.25
_MAX_INSPECT_S = 6.0
_INSPECT_SHARE = 20  # an inspection may take 1/20 of the time between two
_THREADS_EVERY_S = 2.0  # a thousand idle commands: 6 % of a core, mostly for wakeups
_END_OF_INPUT = b"\x04"


class LimitGuard:
    def __init__(self, command: ShimCommand, wakeup: int) -> None:
        self._command = command
        self._order = command.order
        self._spool = Spool(command.order.segment_bytes)
        self._wakeup = wakeup
        # The shim reads the FIFO only for a terminal. It is open before a client can write.
        self._fifo = os.open("stdin", os.O_RDWR | os.O_NONBLOCK) if command.order.terminal else -1
        self._typed = b""  # not yet accepted by the terminal
        self._at_line_start = True
        self._closing = False
        self._open = True  # its output
        self._poller = select.poll()
        self._reason = ""  # why the shim ended the command; empty: it ended by itself
        self._detail = ""
        self._left: list[str] = []  # names of processes that outlived the command
        self._term_at = self._kill_at = self._killed_at = 0.0  # zero: not due
        self._inspect_at = self._threads_at = 0.0
        self._inspect_every_s = _MIN_INSPECT_S
        self._cpu = -1
        self._load = -1
        self._threads = 0

    def run(self) -> None:
        """Guard the command until all its processes have ended."""
        command = self._command
        self._poller.register(self._wakeup, select.POLLIN)
        self._poller.register(command.output, select.POLLIN)
        if self._fifo >= 0:
            self._poller.register(self._fifo, select.POLLIN)
        try:
            self._load = os.open("/proc/loadavg", os.O_RDONLY)
        except OSError:
            pass  # then a sudden rise of threads is not detected early
        left = command.reap()  # processes may have ended before signals were handled
        while command.ended is None or left:
            for descriptor, event in self._poll_events():
                self._serve(descriptor, event)
            left = command.reap() if self._ending() else left
            self._advance(time.monotonic(), left)
            if self._killed_at and time.monotonic() > self._killed_at + _GIVE_UP_S:
                break
        send(os.killpg, command.pid, signal.SIGKILL)  # for systems that cannot list processes
        self._drain()

    def exit_status(self) -> dict[str, object]:
        code, by = self._command.ended or (None, None)
        return {
            "reason": self._reason or "exited",
            "detail": self._detail,
            "code": code,
            "signal": by,
            "ended_at": time.time(),
            "bytes": self._spool.total,
            "dropped": self._spool.dropped,
            "problem": self._spool.problem,
            "left": sorted(set(self._left))[:10],
        }

    def _ending(self) -> bool:
        return self._command.ended is not None or bool(self._kill_at or self._term_at)

    def _timeout_s(self) -> float:
        if self._ending():
            return _ENDING_POLL_S
        return max(0.0, min(self._inspect_at, self._threads_at) - time.monotonic())

    def _poll_events(self) -> list[tuple[int, int]]:
        timeout_s = self._timeout_s()
        due_at = time.monotonic() + timeout_s
        events = self._poller.poll(timeout_s * 1000)
        if self._term_at and self._command.ended is not None:  # the linger time excludes suspends of the machine
            self._term_at += max(0.0, time.monotonic() - due_at)
        return events

    def _serve(self, descriptor: int, event: int) -> None:
        if descriptor == self._wakeup:
            for number in os.read(self._wakeup, 4096):
                self._on_signal(number)
        elif descriptor == self._fifo:
            self._type()
        if descriptor == self._command.output:
            if event & select.POLLOUT:
                self._type()
            if event & ~select.POLLOUT and not self._read(_MAX_READ_BYTES):
                self._poller.unregister(descriptor)
                self._open = False

    def _on_signal(self, number: int) -> None:
        if number == signal.SIGCHLD:
            self._command.reap()
        elif number == signal.SIGUSR1:
            self._close_input()
        elif number == signal.SIGTERM:
            if self._command.ended is None and not self._reason:
                self._reason = "killed"
            if self._kill_at:  # second SIGTERM
                self._kill_at = time.monotonic()
            else:
                self._term_at = time.monotonic()

    def _read(self, max_bytes: int) -> bool:
        """Store available output. Return False at its end."""
        more = self._store(max_bytes)
        limit = self._order.output_max
        if limit and self._spool.total + self._spool.dropped > limit:
            self._end_over_limit("output", f"it wrote more than {limit} bytes")
        return more

    def _store(self, max_bytes: int) -> bool:
        while max_bytes > 0:
            try:
                data = os.read(self._command.output, _READ_BYTES)
            except BlockingIOError:
                return True
            except OSError:  # the end of a terminal
                return False
            if not data:
                return False
            self._spool.add(data)
            max_bytes -= len(data)
        return True

    def _drain(self) -> None:
        """Store the rest of the output, without a size limit: all writers have ended."""
        deadline = time.monotonic() + _GIVE_UP_S
        before = -1
        while before != self._spool.total + self._spool.dropped and time.monotonic() < deadline:
            before = self._spool.total + self._spool.dropped
            if not self._store(_MAX_READ_BYTES):
                break

    def _type(self) -> None:
        """Copy input from the FIFO to the terminal, as fast as the terminal accepts it."""
        if not self._typed and self._fifo >= 0:
            try:
                self._typed = os.read(self._fifo, 4096)
            except BlockingIOError:
                pass
        if not self._typed and self._closing:
            self._typed = _END_OF_INPUT if self._at_line_start else 2 * _END_OF_INPUT
            self._closing = False
        if self._typed:
            try:
                sent = os.write(self._command.input, self._typed)
                self._at_line_start = self._typed[sent - 1 : sent] in (b"\n", b"\r", _END_OF_INPUT)
                self._typed = self._typed[sent:]
            except BlockingIOError:
                pass
            except OSError:  # the terminal is closed
                self._typed, self._closing = b"", False
        busy = bool(self._typed or self._closing)
        if self._open:
            self._poller.modify(self._command.output, select.POLLIN | (select.POLLOUT if busy else 0))
        if self._fifo >= 0:
            self._poller.modify(self._fifo, 0 if self._typed else select.POLLIN)

    def _close_input(self) -> None:
        remove("stdin")  # first: later writers must see that it is closed
        if not self._order.terminal:
            if self._command.input >= 0:
                os.close(self._command.input)
                self._command.input = -1
        elif self._fifo >= 0:
            rest = _rest(self._fifo)
            self._poller.unregister(self._fifo)
            os.close(self._fifo)
            self._fifo = -1
            self._typed += rest
            self._closing = True
            self._type()

    def _advance(self, now: float, left: list[int]) -> None:
        """Do what is due: the next step of an end, or an inspection of the command's resource use."""
        if self._command.ended is not None and left and not (self._term_at or self._kill_at):
            self._term_at = now + _LINGER_S
        if self._term_at and now >= self._term_at:
            if self._command.ended is not None and not self._reason:
                self._left = [member.name for member in self._command.members()]
            self._command.signal(signal.SIGTERM, signal.SIGCONT)
            self._term_at, self._kill_at = 0.0, now + _grace_s()
        if self._kill_at and now >= self._kill_at:
            self._command.signal(signal.SIGKILL)
            self._killed_at = self._killed_at or now
            self._kill_at = now + _ENDING_POLL_S
        if now >= min(self._inspect_at, self._threads_at):
            self._inspect(now)

    def _inspect(self, now: float) -> None:
        self._threads_at = now + _THREADS_EVERY_S
        threads = self._threads_on_this_machine()
        limit = self._order.processes_max
        storm = bool(limit) and threads > self._threads + limit // 4
        if not storm and now < self._inspect_at:
            self._threads = min(threads, self._threads)
            return
        self._threads = threads
        members = list(self._command.members())
        cpu = sum(member.cpu for member in members)
        self._inspect_every_s = _MIN_INSPECT_S if cpu != self._cpu else min(2 * self._inspect_every_s, _MAX_INSPECT_S)
        self._cpu = cpu
        self._judge(members)
        spent_s = time.monotonic() - now
        self._inspect_at = now + max(self._inspect_every_s, _INSPECT_SHARE * spent_s)

    def _judge(self, members: list[Member]) -> None:
        memory, processes = self._order.memory_max, self._order.processes_max
        if processes and len(members) > processes:
            self._end_over_limit(
                "processes", f"it had {len(members)} processes at a time, more than the {processes} allowed"
            )
        elif memory and sum(member.resident for member in members) > memory:
            used = sum(proportional(member) for member in members)
            if used > memory:
                self._end_over_limit("memory", f"it used {used} bytes of memory, more than the {memory} allowed")

    def _end_over_limit(self, reason: str, detail: str) -> None:
        if not self._reason:
            self._reason, self._detail = reason, detail
        self._term_at, self._kill_at = 0.0, time.monotonic()  # also during its grace

    def _threads_on_this_machine(self) -> int:
        if self._load < 0:
            return 0
        return int(os.pread(self._load, 200, 0).split()[3].partition(b"/")[2])


def _rest(fifo: int) -> bytes:
    try:
        return os.read(fifo, _READ_BYTES)
    except BlockingIOError:
        return b""


def _grace_s() -> float:
    try:
        return float(whole("grace"))
    except (OSError, ValueError):
        return _GRACE_S
