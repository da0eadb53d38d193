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
_AT_ONCE_BYTES = 2**22  # of output, before other things get their turn
_GRACE_S = 2.0
_LINGER_S = 0.5  # for what outlives the command, to end by itself
_GIVE_UP_S = 10.0  # after the first SIGKILL: what is left then cannot be killed
_ENDING_POLL_S = 0.05
_MIN_LOOK_S = 0.25
_MAX_LOOK_S = 6.0
_LOOK_SHARE = 20  # a look may take this part of the time between two
_SIGN_EVERY_S = 2.0  # a thousand idle commands: 6 % of a core, nearly all of it for waking up
_END_OF_INPUT = b"\x04"


class LimitGuard:
    def __init__(self, command: ShimCommand, wakeup: int) -> None:
        self._command = command
        self._order = command.order
        self._spool = Spool(command.order.segment_bytes)
        self._wakeup = wakeup
        # Read by the shim only when the command sits at a terminal; open before anybody can want to write.
        self._fifo = os.open("stdin", os.O_RDWR | os.O_NONBLOCK) if command.order.terminal else -1
        self._typed = b""  # for the terminal, which has not taken it yet
        self._at_line_start = True
        self._closing = False
        self._open = True  # its output
        self._poller = select.poll()
        self._reason = ""  # why the shim ended it; empty: it ended by itself
        self._detail = ""
        self._left: list[str] = []  # names of what outlived the command
        self._term_at = self._kill_at = self._killed_at = 0.0  # zero: not due
        self._look_at = self._sign_at = 0.0
        self._look_every_s = _MIN_LOOK_S
        self._cpu = -1
        self._load = -1
        self._threads = 0

    def run(self) -> None:
        """Until nothing of the command is left."""
        command = self._command
        self._poller.register(self._wakeup, select.POLLIN)
        self._poller.register(command.output, select.POLLIN)
        if self._fifo >= 0:
            self._poller.register(self._fifo, select.POLLIN)
        try:
            self._load = os.open("/proc/loadavg", os.O_RDONLY)
        except OSError:
            pass  # no cheap sign of a storm, then
        left = command.reap()  # what ended before the signals were listened to
        while command.ended is None or left:
            for descriptor, event in self._awaited():
                self._serve(descriptor, event)
            left = command.reap() if self._ending() else left
            self._advance(time.monotonic(), left)
            if self._killed_at and time.monotonic() > self._killed_at + _GIVE_UP_S:
                break
        send(os.killpg, command.pid, signal.SIGKILL)  # for systems that do not tell who is left
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

    def _patience_s(self) -> float:
        if self._ending():
            return _ENDING_POLL_S
        return max(0.0, min(self._look_at, self._sign_at) - time.monotonic())

    def _awaited(self) -> list[tuple[int, int]]:
        patience_s = self._patience_s()
        due_at = time.monotonic() + patience_s
        events = self._poller.poll(patience_s * 1000)
        if self._term_at and self._command.ended is not None:  # what outlives the command has its time to end in
            self._term_at += max(0.0, time.monotonic() - due_at)  # and had none of it while the machine stood still
        return events

    def _serve(self, descriptor: int, event: int) -> None:
        if descriptor == self._wakeup:
            for number in os.read(self._wakeup, 4096):
                self._told(number)
        elif descriptor == self._fifo:
            self._type()
        if descriptor == self._command.output:
            if event & select.POLLOUT:
                self._type()
            if event & ~select.POLLOUT and not self._read(_AT_ONCE_BYTES):
                self._poller.unregister(descriptor)
                self._open = False

    def _told(self, number: int) -> None:
        if number == signal.SIGCHLD:
            self._command.reap()
        elif number == signal.SIGUSR1:
            self._close_input()
        elif number == signal.SIGTERM:
            if self._command.ended is None and not self._reason:
                self._reason = "killed"
            if self._kill_at:  # the second one
                self._kill_at = time.monotonic()
            else:
                self._term_at = time.monotonic()

    def _read(self, most: int) -> bool:
        """Store what there is. False when there will be no more."""
        more = self._store(most)
        limit = self._order.output_max
        if limit and self._spool.total + self._spool.dropped > limit:
            self._overrun("output", f"it wrote more than {limit} bytes")
        return more

    def _store(self, most: int) -> bool:
        while most > 0:
            try:
                data = os.read(self._command.output, _READ_BYTES)
            except BlockingIOError:
                return True
            except OSError:  # how a terminal ends
                return False
            if not data:
                return False
            self._spool.add(data)
            most -= len(data)
        return True

    def _drain(self) -> None:
        """What is still in the pipe; without limit, for all who could write to it are gone."""
        deadline = time.monotonic() + _GIVE_UP_S
        before = -1
        while before != self._spool.total + self._spool.dropped and time.monotonic() < deadline:
            before = self._spool.total + self._spool.dropped
            if not self._store(_AT_ONCE_BYTES):
                break

    def _type(self) -> None:
        """From the FIFO to the terminal, no faster than the terminal takes it."""
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
            except OSError:  # nobody sits there any more
                self._typed, self._closing = b"", False
        busy = bool(self._typed or self._closing)
        if self._open:
            self._poller.modify(self._command.output, select.POLLIN | (select.POLLOUT if busy else 0))
        if self._fifo >= 0:
            self._poller.modify(self._fifo, 0 if self._typed else select.POLLIN)

    def _close_input(self) -> None:
        remove("stdin")  # first: whoever comes later shall learn that it is closed
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
        """What is due: the steps of an end, or a look at what the command uses."""
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
        if now >= min(self._look_at, self._sign_at):
            self._inspect(now)

    def _inspect(self, now: float) -> None:
        self._sign_at = now + _SIGN_EVERY_S
        threads = self._threads_on_this_machine()
        most = self._order.processes_max
        storm = bool(most) and threads > self._threads + most // 4
        if not storm and now < self._look_at:
            self._threads = min(threads, self._threads)
            return
        self._threads = threads
        members = list(self._command.members())
        cpu = sum(member.cpu for member in members)
        self._look_every_s = _MIN_LOOK_S if cpu != self._cpu else min(2 * self._look_every_s, _MAX_LOOK_S)
        self._cpu = cpu
        self._judge(members)
        spent_s = time.monotonic() - now
        self._look_at = now + max(self._look_every_s, _LOOK_SHARE * spent_s)

    def _judge(self, members: list[Member]) -> None:
        memory, processes = self._order.memory_max, self._order.processes_max
        if processes and len(members) > processes:
            self._overrun(
                "processes", f"it had {len(members)} processes at a time, more than the {processes} allowed"
            )
        elif memory and sum(member.resident for member in members) > memory:
            used = sum(proportional(member) for member in members)
            if used > memory:
                self._overrun("memory", f"it used {used} bytes of memory, more than the {memory} allowed")

    def _overrun(self, reason: str, detail: str) -> None:
        if not self._reason:
            self._reason, self._detail = reason, detail
        self._term_at, self._kill_at = 0.0, time.monotonic()  # also when it was in its grace

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
