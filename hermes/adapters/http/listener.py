"""Life cycle of a server: open, intake closed, leaving, stopped.

Closing the intake refuses new turns while running answers continue. Leaving ends pure watchers. After the grace
period, waiting clients get the answer that their message is stored and continues later. Then connections close.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from aiohttp import web

from hermes.adapters.http.connection import Connection
from hermes.adapters.http.peer_limit import ConnectionAdmission
from hermes.domain.errors import StoppingError
from hermes.system import own_ports

T = TypeVar("T")

_LAST_WORDS_S = 1.0  # for the last answers at the end of the grace period


class Lifetime:
    """State of a server. Create it on the running event loop."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.intake_open = True
        self.leaving: asyncio.Future[None] = loop.create_future()
        self.over: asyncio.Future[None] = loop.create_future()

    def check_intake(self) -> None:
        if not self.intake_open:
            raise StoppingError("The daemon is stopping and accepts no new messages. Nothing was stored; try again.")

    def close_intake(self) -> None:
        self.intake_open = False

    def leave(self) -> None:
        self.close_intake()
        _resolve(self.leaving)

    def end(self) -> None:
        self.leave()
        _resolve(self.over)


async def until(work: Coroutine[Any, Any, T], *ends: asyncio.Future[Any]) -> T | None:
    """Run the work until one of the futures is done. Returns its result, or None if it was cancelled.

    The work runs in the caller's task: a task of its own would cost more than many an answer.
    """
    if any(future.done() for future in ends):
        work.close()
        return None
    task = asyncio.current_task()
    assert task is not None
    running, ended = True, False

    def end(_: asyncio.Future[Any]) -> None:
        nonlocal ended
        if running and not ended:
            ended = True
            task.cancel()

    for future in ends:
        future.add_done_callback(end)
    try:
        result = await work
    except asyncio.CancelledError:
        if ended and task.uncancel() == 0:
            return None
        raise
    else:
        if ended:  # the work finished nevertheless
            task.uncancel()
        return result
    finally:
        running = False
        for future in ends:
            future.remove_done_callback(end)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Listener:
    def __init__(
        self,
        app: web.Application,
        lifetime: Lifetime,
        *,
        door: ConnectionAdmission,
        header_timeout_s: float,
        stall_timeout_s: float,
    ) -> None:
        # Connections of the last moment are not waited for: their clients have got no answer yet.
        self._runner = web.AppRunner(app, shutdown_timeout=_LAST_WORDS_S)
        self._lifetime = lifetime
        self._door = door
        self._header_timeout_s = header_timeout_s
        self._stall_timeout_s = stall_timeout_s
        self._server: asyncio.Server | None = None
        self._ports: list[int] = []  # empty for a Unix socket

    async def open(self, listen: Callable[[Callable[[], Connection]], Awaitable[asyncio.Server]]) -> asyncio.Server:
        await self._runner.setup()
        try:
            self._server = await listen(self._connection)
        except BaseException:
            await self._runner.cleanup()
            raise
        self._ports = [
            address[1] for each in self._server.sockets if isinstance(address := each.getsockname(), tuple)
        ]
        for port in self._ports:
            own_ports.opened(port)
        return self._server

    def _connection(self) -> Connection:
        assert self._runner.server is not None
        return Connection(
            self._runner.server,
            door=self._door,
            header_timeout_s=self._header_timeout_s,
            stall_timeout_s=self._stall_timeout_s,
        )

    async def stop(self, grace_s: float) -> None:
        if self._server is None or self._runner.server is None:
            return
        self._server.close()
        for port in self._ports:
            own_ports.closed(port)
        self._ports = []
        self._lifetime.leave()
        grace = asyncio.get_running_loop().call_later(grace_s, self._lifetime.end)
        self._runner.server.pre_shutdown()
        await self._runner.server.shutdown(grace_s + _LAST_WORDS_S)
        grace.cancel()
        self._lifetime.end()
        await self._runner.cleanup()
