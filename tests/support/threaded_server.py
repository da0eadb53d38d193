"""A server in a thread with an event loop of its own: it serves whatever the test does, and outlives daemons."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

from aiohttp import web

_PATIENCE_S = 30


class ThreadedServer:
    def __init__(self, name: str) -> None:
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name=name)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(_PATIENCE_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._over is not None
        self._in_loop(self._over.set)
        self._thread.join(_PATIENCE_S)

    async def _serve(self) -> None:
        """Begin, then wait `_until_over`, then clean up."""
        raise NotImplementedError

    async def _until_over(self) -> None:
        assert self._over is not None
        self._ready.set()
        await self._over.wait()

    def _in_loop(self, work: Callable[[], object]) -> None:
        if self._loop is not None:  # else nothing is served yet
            self._loop.call_soon_threadsafe(work)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        await self._serve()


@asynccontextmanager
async def listening(app: web.Application, port: int = 0) -> AsyncIterator[str]:
    """On loopback, at this address."""
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()
