"""Foreground program in a sandbox: start, end and limits.

bubblewrap is a monitor outside, an init (process 1) inside, and the program below it. The kernel ends everything in
the process namespace with its init, so the end of a command is "the monitor was reaped and init's pidfd is readable":
no scan of /proc, no polling. A polite end goes to the processes below init; a signal to the monitor would kill all.

The program starts in two steps. bubblewrap stops before it starts the program (`--block-fd`), so that init can be
identified and the proxy put in place. Then the keeper, a shell, reads a line from the same pipe. If the daemon dies
in between, the pipe closes without a line and the keeper ends. Start bubblewrap from the event loop's thread:
`--die-with-parent` means the thread that forked.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Final

from hermes.domain.process.sandbox_launch import OUTER_ENVIRONMENT, Box
from hermes.processes.child import ChildProcess, Output, connected, fixed_file, is_bash, prepare_terminal
from hermes.processes.shim.member import below, look_at
from hermes.sandbox.box import memory_file

_START_S: Final = 10.0
_BWRAP_FAILED: Final = 1
_GO: Final = b"\0go\n"  # a byte for bubblewrap, a line for the keeper

# The keeper runs between init and the program. It waits for the daemon's line and runs the program. Processes that
# the program left behind get half a second to end; the names of those that did not are stored. The program would
# inherit ignored signals, but not caught ones. The keeper's own messages ("Terminated") are kept out of the output.
_KEEPER: Final = """
read -r _ <"$1" || exit 125
left=$2; shift 2; trap : HUP INT QUIT TERM; exec 9>&2 2>/dev/null
"$@" 2>&9 9>&-
code=$? tries=0 PATH=/usr/bin:/bin
while set -- /proc/[0-9]*; [ $# -gt 2 ]; do
  tries=$((tries + 1))
  if [ $tries -gt 10 ]; then
    for each; do [ "$each" = /proc/1 ] || [ "$each" = "/proc/$$" ] || cat "$each/comm"; done 1<>"$left"; break
  fi
  sleep 0.05
done
exit $code
"""
_LEFT_MAX_BYTES: Final = 4096


class SandboxFailedError(OSError):
    """bubblewrap ended before the program started. The message is bubblewrap's output."""


class BoxedChild(ChildProcess):
    def __init__(
        self, process: Process, output: Output, held: ExitStack, *, init: int, pidfd: int, status: int, left: int
    ) -> None:
        super().__init__(process, output, held)
        self.init = init
        self._pidfd = pidfd
        self._status = status
        self._left = left

    async def wait(self) -> int:
        """Return the exit code. Raises SandboxFailedError if bubblewrap failed before the program started."""
        code = await super().wait()
        if code == _BWRAP_FAILED and b"exit-code" not in _rest(self._status):
            raise SandboxFailedError
        return code

    def signal(self, number: int) -> bool:
        """Send it to every process of the command. SIGKILL goes to init and ends them all."""
        if self._over():
            return False
        if number == signal.SIGKILL:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        elif number:
            for pid in below(self.init):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        return True

    def ended_with_it(self) -> list[str]:
        return os.pread(self._left, _LEFT_MAX_BYTES, 0).rstrip(b"\0").decode(errors="replace").split("\n")[:-1]

    async def emptied(self, within_s: float) -> bool:
        if self._over():
            return True
        loop = asyncio.get_running_loop()
        gone = asyncio.Event()
        loop.add_reader(self._pidfd, gone.set)
        try:
            async with asyncio.timeout(within_s):
                await gone.wait()
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(self._pidfd)
        return True

    async def stop(self, grace_s: float) -> None:
        try:
            await asyncio.to_thread(self.signal, signal.SIGTERM)
            await self.emptied(within_s=grace_s)
        finally:
            self.signal(signal.SIGKILL)
        await self._process.wait()

    async def members(self) -> list[str] | None:
        return await asyncio.to_thread(_names_below, self.init)

    def close(self) -> None:
        self.signal(signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._held.close()

    def _over(self) -> bool:
        """Return whether init has ended, and all its processes with it."""
        try:
            return os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # a child of the monitor, not ours: ask whether the descriptor is readable
            return _readable(self._pidfd)


async def spawn_boxed(
    box: Box,
    argv: Sequence[str],
    *,
    shell: str,
    environ: Mapping[str, str],
    terminal: bool,
    pass_fds: Sequence[int] = (),
    prepare: Callable[[int], Awaitable[None]] | None = None,
) -> BoxedChild:
    """Start a blocked sandbox, run `prepare` with init's pid, and let the program run. Raises OSError.

    `shell` is the keeper's: bash or sh.
    """
    with ExitStack() as ours:
        left = fixed_file(ours, _LEFT_MAX_BYTES)
        go_out, go_in = os.pipe()
        ours.callback(os.close, go_in)
        os.set_blocking(go_in, False)
        kept = _kept(shell, argv, go_out, left)
        process, status, output = await _launch(
            box, kept, ours, go=go_out, environ=environ, terminal=terminal, pass_fds=(left, *pass_fds)
        )
        init = await _started(process, status, output)
        try:
            pidfd = os.pidfd_open(init)
        except ProcessLookupError:
            raise SandboxFailedError(await _failure_output(process, output)) from None
        ours.callback(os.close, pidfd)
        held = ours.pop_all()
        child = BoxedChild(process, output, held, init=init, pidfd=pidfd, status=status, left=left)
    try:
        if prepare is not None:
            await prepare(init)
        with contextlib.suppress(BrokenPipeError):  # the sandbox failed; `wait` reports it
            os.write(go_in, _GO)
    except BaseException:
        child.close()
        raise
    return child


async def _launch(
    box: Box,
    kept: Sequence[str],
    ours: ExitStack,
    *,
    go: int,
    environ: Mapping[str, str],
    terminal: bool,
    pass_fds: Sequence[int],
) -> tuple[Process, int, Output]:
    """Start bubblewrap, which waits for the `go` pipe. Closes `go`; our descriptors are added to `ours`.

    Returns the process, the read end of its status pipe and its output.
    """
    with ExitStack() as theirs:
        theirs.callback(os.close, go)
        status_out, status_in = _pipe(ours, theirs)
        source, sink = os.openpty() if terminal else os.pipe()
        theirs.callback(os.close, sink)
        output = await connected(ours.enter_context(os.fdopen(source, "rb", buffering=0)))
        ours.callback(output.close)
        if terminal:
            prepare_terminal(source)
        seccomp = memory_file(theirs, box.seccomp)
        block = os.dup(go)  # bubblewrap closes its own; the program reads from the other
        theirs.callback(os.close, block)
        more = ["--json-status-fd", str(status_in), "--block-fd", str(block)]
        arguments = memory_file(
            theirs, box.arguments(environ, *more, *(("--seccomp", str(seccomp)) if box.seccomp else ()))
        )
        if box.user is not None:
            for descriptor in (sink, go):
                os.fchown(descriptor, box.user.uid, box.user.gid)  # else /dev/fd could not open it
        front = _on_terminal(os.ttyname(sink)) if terminal else ()
        process = await asyncio.create_subprocess_exec(
            *front, *box.prefix, "--args", str(arguments), "--", *box.program(kept, environ),
            cwd="/",
            env=OUTER_ENVIRONMENT,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            pass_fds=(arguments, seccomp, status_in, block, go, *pass_fds),
        )  # fmt: skip
    return process, status_out, output


def _kept(shell: str, argv: Sequence[str], go: int, left: int) -> tuple[str, ...]:
    """Return the keeper's command line.

    With -p bash ignores its environment but passes all of it on. Other shells drop variables with unusual names.
    """
    keeper = (shell, "-p", "-c") if is_bash(shell) else (shell, "-c")
    return (*keeper, _KEEPER, "keeper", f"/dev/fd/{go}", f"/dev/fd/{left}", *argv)


def _on_terminal(name: str) -> tuple[str, ...]:
    """Return a prefix that opens the terminal: a session leader without one then owns it, for job control."""
    return ("/bin/sh", "-c", 'exec 0<>"$1" 1>&0 2>&0; shift; exec "$@"', "terminal", name)


def _pipe(ours: ExitStack, theirs: ExitStack) -> tuple[int, int]:
    out, into = os.pipe()
    ours.callback(os.close, out)
    theirs.callback(os.close, into)
    return out, into


async def _started(process: Process, status: int, output: Output) -> int:
    """Return init's pid from bubblewrap's report, which arrives in several writes."""
    loop = asyncio.get_running_loop()
    os.set_blocking(status, False)
    seen = b""
    ready = asyncio.Event()
    loop.add_reader(status, ready.set)
    try:
        async with asyncio.timeout(_START_S):
            while b"\n" not in seen:
                await ready.wait()
                ready.clear()
                with contextlib.suppress(BlockingIOError):  # the event was set twice for one write
                    data = os.read(status, 4096)
                    if not data:
                        break
                    seen += data
    except TimeoutError:
        process.kill()
        raise SandboxFailedError(f"the sandbox did not start within {_START_S:g} s") from None
    finally:
        loop.remove_reader(status)
    if b"\n" not in seen:
        raise SandboxFailedError(await _failure_output(process, output))
    return int(json.loads(seen.partition(b"\n")[0])["child-pid"])


async def _failure_output(process: Process, output: Output) -> str:
    await process.wait()
    return (await output.read()).decode(errors="replace").strip() or "bubblewrap ended without an error message"


def _rest(status: int) -> bytes:
    try:
        return os.read(status, 4096)
    except BlockingIOError:
        return b""


def _readable(pidfd: int) -> bool:
    import select  # noqa: PLC0415

    return bool(select.select([pidfd], [], [], 0)[0])


def _names_below(pid: int) -> list[str]:
    seen = (look_at(each) for each in below(pid))
    return [member.name for member in seen if member is not None and member.state not in (b"Z", b"X")]
