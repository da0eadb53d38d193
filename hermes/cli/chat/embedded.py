"""Daemon inside this process, for a chat when none runs.

It has its own thread and event loop. The chat talks to it over its socket, as to any other daemon.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from hermes.domain.values import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractAsyncContextManager

    from hermes.config.home import Home

_Ready: TypeAlias = "Future[Callable[[], object]]"  # its result ends the context


@contextmanager
def daemon_inside(home: Home, environ: Mapping[str, str]) -> Iterator[None]:
    from hermes.app.composition import embedded
    from hermes.app.os_process import hide_from_children
    from hermes.config.loader import load_config

    hide_from_children()  # tools are children of this process, too
    config = load_config(home, environ)
    if config.log.level != "ERROR":  # the terminal is for the conversation
        config = replace(config, log=replace(config.log, level="WARNING"))
    with in_thread(embedded(home, config, environ)):
        yield


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
