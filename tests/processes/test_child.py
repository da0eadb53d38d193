"""Foreground child processes."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hermes.processes.child import ChildLimits, ChildProcess, limit_commands, spawn

ENVIRON = {"PATH": os.environ["PATH"]}


@asynccontextmanager
async def child(*argv: str, shell: str = "/bin/sh", terminal: bool = False) -> AsyncIterator[ChildProcess]:
    made = await spawn(argv, shell=shell, cwd="/", environ=ENVIRON, terminal=terminal)
    try:
        yield made
    finally:
        made.close()
        await made.wait()


async def all_of(made: ChildProcess) -> bytes:
    whole = b""
    while data := await made.read():
        whole += data
    return whole


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
@pytest.mark.parametrize("terminal", [False, True])
async def test_child_returns_output_and_exit_code(shell: str, terminal: bool) -> None:
    async with child("sh", "-c", "echo out; echo err >&2; exit 7", shell=shell, terminal=terminal) as made:
        assert (await all_of(made)).split() == [b"out", b"err"]
        assert await made.wait() == 7
        assert await made.emptied(within_s=30)


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
async def test_death_by_signal_is_an_exit_code_without_output(shell: str) -> None:
    async with child("sh", "-c", "kill -KILL $$", shell=shell) as made:
        assert await made.wait() == 137
        assert await all_of(made) == b""


async def test_child_has_default_signal_handlers() -> None:
    async with child("grep", "^Sig[BI]", "/proc/self/status") as made:
        lines = dict(line.split(b":\t") for line in (await all_of(made)).splitlines())
    assert int(lines[b"SigBlk"], 16) == 0
    ignored = {each for each in signal.valid_signals() if int(lines[b"SigIgn"], 16) >> (each - 1) & 1}
    # The tests may run under `nohup`, which a child does not change.
    inherited = {each for each in signal.valid_signals() if signal.getsignal(each) == signal.SIG_IGN}
    assert ignored <= inherited - {signal.SIGPIPE, signal.SIGXFSZ}


async def test_child_that_writes_faster_than_its_reader_waits() -> None:
    async with child("sh", "-c", "head -c 50000000 /dev/zero; sleep 100") as made:
        async with asyncio.timeout(30):
            while len(made._output._waiting) < 2**19:  # noqa: ASYNC110 - without a reader there is no event to wait for
                await asyncio.sleep(0.01)
        assert 2**19 <= len(await made.read()) <= 2**20


async def test_a_group_that_is_gone_is_not_signalled_again() -> None:
    async with child("true") as made:
        await made.wait()
        assert await made.emptied(within_s=30)
        assert not made.signal(0)
        assert await made.members() == []


async def test_stop_ends_the_whole_group() -> None:
    async with child("sh", "-c", "trap '' TERM; sleep 1010.25 & echo ready; wait; sleep 1010.25") as made:
        assert await made.read() == b"ready\n"
        began = time.monotonic()
        await made.stop(0.2)
        assert time.monotonic() - began < 20
        assert await made.emptied(within_s=30)  # what was killed may take a moment to die


async def test_missing_directory_is_an_error_and_leaks_no_descriptor() -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    with pytest.raises(FileNotFoundError):
        await spawn(("true",), shell="/bin/sh", cwd="/nowhere", environ=ENVIRON, terminal=False)
    await asyncio.sleep(0)
    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208 - those of other tests may go meanwhile


def test_limits_use_the_units_of_the_shell() -> None:
    limits = ChildLimits(file_bytes=2**20, open_files=9, memory_bytes=2**20, user_processes=5)
    assert (
        limit_commands(limits, bash=True) == "ulimit -c 0; ulimit -f 1024; ulimit -n 9; ulimit -v 1024; ulimit -u 5;"
    )
    assert (
        limit_commands(limits, bash=False) == "ulimit -c 0; ulimit -f 2048; ulimit -n 9; ulimit -v 1024; ulimit -p 5;"
    )
    assert limit_commands(ChildLimits(file_bytes=0, open_files=0), bash=True) == "ulimit -c 0;"
    assert limit_commands(ChildLimits(file_bytes=0, open_files=0, cpu_s=7), bash=True) == "ulimit -c 0; ulimit -t 7;"
