"""Start of a shim, and its report whether the command runs.

The order is sent through a pipe, because other users can read the shim's arguments and environment.
"""

from __future__ import annotations

import hashlib
import os
import select
import signal
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import hermes
from hermes.domain.process.process import ProcessSpec
from hermes.domain.process.sandbox_launch import ARGS_FD, OUTER_ENVIRONMENT, SECCOMP_FD
from hermes.processes.identity import kill_marked
from hermes.processes.shim.command import MARK, ORDER

STARTED: Final = "ok"
_REPORT_S: Final = 10.0
_TOO_SLOW: Final = f"the command was not started within {_REPORT_S:g} s"
# Without `site` the interpreter starts in a third of the time. Our own folder comes last, so it shadows nothing.
_PROGRAM: Final = "import sys; sys.path.append(sys.argv[2]); from hermes.processes.shim.main import main; main()"


def launch(spec: ProcessSpec, folder: Path) -> str:
    """Start a shim and return its report: `STARTED`, or the error of the start."""
    order = _order(spec)
    with ExitStack() as held:
        order_out, order_into = os.pipe()
        sending = held.enter_context(os.fdopen(order_into, "wb", buffering=0))
        report_out, report_into = os.pipe()
        held.callback(os.close, report_out)
        try:
            pid = _spawn_shim(folder, order_out, report_into)
        finally:
            os.close(order_out)
            os.close(report_into)
        with suppress(BrokenPipeError):  # the shim died; then its report is empty
            _send_all(sending.fileno(), order)
            sending.close()
        report = _read_report(report_out)
    if report != STARTED:
        os.kill(pid, signal.SIGKILL)  # our child, not reaped yet: the pid is still its own
        os.waitpid(pid, 0)
        if report == _TOO_SLOW:
            kill_marked(spec.id)  # the shim may have started the command before it could report
    return report


def _send_all(descriptor: int, data: bytes) -> None:
    sent = 0
    while sent < len(data):
        sent += os.write(descriptor, data[sent:])


def _read_report(source: int) -> str:
    poller = select.poll()
    poller.register(source, select.POLLIN)
    deadline = time.monotonic() + _REPORT_S
    report = b""
    while poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
        data = os.read(source, 4096)
        if not data:
            return report.decode("utf-8", "replace")
        report += data
    return _TOO_SLOW


def _order(spec: ProcessSpec) -> bytes:
    if not spec.argv:
        raise ValueError("the command is empty")
    limits = spec.limits
    numbers = (
        int(spec.terminal),
        max(1, limits.spool_bytes // 2),
        limits.memory_bytes,
        limits.processes,
        limits.output_bytes,
        len(spec.argv),
    )
    texts = [spec.cwd, *spec.argv, *(f"{name}={value}" for name, value in spec.environ.items())]
    if any("\0" in text for text in texts):
        raise ValueError("a command, its folder and its environment cannot contain NUL")
    box = spec.box
    environ = {**spec.environ, MARK.decode(): spec.id}  # also inside: finds processes whose shim was killed
    if box is not None:
        argv = (*box.prefix, "--args", str(ARGS_FD), "--", *box.program(spec.argv, environ))
        numbers = (*numbers[:-1], len(argv))
        texts = ["/", *argv, *(f"{name}={value}" for name, value in OUTER_ENVIRONMENT.items())]
    filtered = () if box is None or not box.seccomp else ("--seccomp", str(SECCOMP_FD))
    hashed = hashlib.sha256("\0".join(spec.argv).encode("utf-8", "surrogateescape")).hexdigest()
    fields = [
        ORDER,
        *(str(number).encode() for number in numbers),
        hashed.encode(),
        b"" if box is None else box.arguments(environ, *filtered).hex().encode(),
        b"" if box is None else box.seccomp.hex().encode(),
        b"1" if box is not None and box.network else b"",
        b"" if box is None else ",".join(sorted(box.granted_hosts)).encode(),
        *map(os.fsencode, texts),
        b"end",
    ]
    return b"\0".join(fields)


def _spawn_shim(folder: Path, order: int, report: int) -> int:
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", "-S", "-E", "-c", _PROGRAM, str(folder), str(Path(hermes.__file__).parents[1])],
        {},  # the command's environment is in the order; the shim's could be read by others
        file_actions=[
            (os.POSIX_SPAWN_DUP2, order, 0),
            (os.POSIX_SPAWN_DUP2, report, 1),
            (os.POSIX_SPAWN_OPEN, 2, str(folder / "shim.err"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        ],
        setsigmask=[],
        setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
    )
