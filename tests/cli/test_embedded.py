"""Asynchronous context held open by another thread."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from hermes.cli.chat.embedded import in_thread
from hermes.domain.errors import AlreadyRunningError

DUMPABLE = """
import ctypes, os
from hermes.cli.chat.embedded import daemon_inside
from hermes.config.home import Home
dumpable = lambda: ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
before = dumpable()
with daemon_inside(Home.from_environ(os.environ), os.environ):
    print(before, dumpable())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this")
def test_tools_cannot_read_the_environment_of_an_embedded_daemon(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DUMPABLE],
        env={**os.environ, "HERMES_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "1 0\n"), done.stderr


def test_the_context_is_open_inside_and_closed_after() -> None:
    happened: list[str] = []

    @asynccontextmanager
    async def context() -> AsyncIterator[None]:
        happened.append(f"opened elsewhere: {threading.current_thread() is not threading.main_thread()}")
        yield
        await asyncio.sleep(0)
        happened.append("closed")

    with in_thread(context()):
        happened.append("inside")
    assert happened == ["opened elsewhere: True", "inside", "closed"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("hermes-daemon")]


def test_error_while_opening_is_raised() -> None:
    class Context(AbstractAsyncContextManager[None]):
        async def __aenter__(self) -> None:
            raise AlreadyRunningError("another one", pid=1)

        async def __aexit__(self, *_: object) -> None:
            pytest.fail("it was never open")

    with pytest.raises(AlreadyRunningError, match="another one"), in_thread(Context()):
        pytest.fail("it was never open")


def test_error_while_closing_is_raised() -> None:
    @asynccontextmanager
    async def context() -> AsyncIterator[None]:
        yield
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"), in_thread(context()):
        pass


def test_the_context_is_closed_when_the_block_fails() -> None:
    closed = threading.Event()

    @asynccontextmanager
    async def context() -> AsyncIterator[None]:
        try:
            yield
        finally:
            closed.set()

    with pytest.raises(KeyboardInterrupt), in_thread(context()):
        raise KeyboardInterrupt
    assert closed.is_set()
