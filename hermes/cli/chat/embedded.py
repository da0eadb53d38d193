"""Daemon for a chat when none runs: in a thread of this process, or in a child process.

The chat talks to it over its socket, as to any other daemon.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from hermes.domain.errors import HermesError
from hermes.domain.values import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractAsyncContextManager

    from hermes.config.home import Home
    from hermes.config.settings import Config

_Ready: TypeAlias = "Future[Callable[[], object]]"  # its result ends the context


@contextmanager
def daemon_inside(home: Home, environ: Mapping[str, str]) -> Iterator[None]:
    from hermes.app.composition import embedded
    from hermes.app.host.os_process import hide_from_children

    hide_from_children()  # tools are children of this process, too
    with in_thread(embedded(home, quiet_config(home, environ), environ)):
        yield


def quiet_config(home: Home, environ: Mapping[str, str]) -> Config:
    """Return the configuration with few log lines: the terminal is for the conversation."""
    from hermes.config.loader import load_config

    config = load_config(home, environ)
    return config if config.log.level == "ERROR" else replace(config, log=replace(config.log, level="WARNING"))


@contextmanager
def in_thread(context: AbstractAsyncContextManager[object]) -> Iterator[None]:
    """Hold an asynchronous context open in another thread. Its exceptions are raised here."""
    ready: _Ready = Future()
    with ThreadPoolExecutor(1, thread_name_prefix="hermes-daemon") as pool:
        running = pool.submit(asyncio.run, _hold(context, ready))
        running.add_done_callback(lambda _: None if ready.done() else ready.set_exception(_reason(running)))
        try:
            ready.result()
            yield
        finally:
            ready.add_done_callback(_end)  # now, or as soon as the context is open
            running.result()


async def _hold(context: AbstractAsyncContextManager[object], ready: _Ready) -> None:
    loop, end = asyncio.get_running_loop(), asyncio.Event()
    async with context:
        ready.set_result(lambda: loop.call_soon_threadsafe(end.set))
        await end.wait()


def _reason(running: Future[None]) -> BaseException:
    return running.exception() or RuntimeError("the context ended before it was ready")


def _end(ready: _Ready) -> None:
    if ready.exception() is None:
        ready.result()()


# ---------------------------------------------------------------- in a process of its own


class ChildDaemon:
    """Daemon in a child process, for the terminal interface, which has to stay quick. It ends with this process."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, or start it again if it has ended."""
        if self._process is not None and self._process.poll() is None:
            return
        self._process = subprocess.Popen(
            [sys.executable, "-m", "hermes.cli.chat.embedded"],
            env=dict(self._environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C on the terminal is not for it
        )

    def problem(self) -> str:
        """Return why it has ended; empty while it runs."""
        if self._process is None or self._process.poll() is None:
            return ""
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {self._process.returncode}"

    def close(self) -> None:
        """End it, and wait until it has stored its work."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()
        self._errors.close()


async def _until_stdin_ends(home: Home, environ: Mapping[str, str]) -> None:
    from hermes.app.composition import embedded

    config = quiet_config(home, environ)
    loop, end = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, end.set)
    reader = asyncio.create_task(asyncio.to_thread(sys.stdin.buffer.read))  # the pipe of `ChildDaemon`
    reader.add_done_callback(lambda _: end.set())
    async with embedded(home, config, environ):
        await end.wait()


def main() -> int:
    from hermes.app.host.os_process import hide_from_children
    from hermes.config.home import Home

    hide_from_children()
    try:
        asyncio.run(_until_stdin_ends(Home.from_environ(os.environ), os.environ))
    except HermesError as error:
        print(f"hermes: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
