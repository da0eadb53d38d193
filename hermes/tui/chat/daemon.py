"""Connection of the terminal interface to the daemon: requests and event streams over the admin socket."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from hermes.config.admin_token import read_token, token_file

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from hermes.client.connection_pool import ConnectionPool
    from hermes.domain.text.server_event import RawEvent

_WRONG_TOKEN = 401  # status for the token of an earlier start


class ChatDaemon(Protocol):
    """Raises ConnectionFailedError and ApiError, and StreamOverError for a stream without further events."""

    async def call(self, method: str, path: str, **options: Any) -> Any: ...

    def events(self, path: str, query: Mapping[str, str], last_id: str = "") -> AsyncIterator[RawEvent]: ...


class SocketDaemon(ChatDaemon):
    """Daemon behind the admin socket.

    Each request has its own connection, with the token of the moment: a start of the daemon changes it.
    """

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    async def call(self, method: str, path: str, **options: Any) -> Any:
        async with self._connection() as pool:
            return await pool.call(method, path, **options)

    async def events(self, path: str, query: Mapping[str, str], last_id: str = "") -> AsyncIterator[RawEvent]:
        async with self._connection() as pool:
            async for event in pool.events("GET", path, params=dict(query), last_id=last_id):
                yield event

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[ConnectionPool]:
        # In a thread: aiohttp takes a while to import, and the first keys are typed meanwhile.
        module = await asyncio.to_thread(import_module, "hermes.client.connection_pool")
        token = await asyncio.to_thread(read_token, token_file(self._socket))
        pool: ConnectionPool = module.ConnectionPool("http://localhost", token, socket=str(self._socket))
        try:
            yield pool
        except module.ApiError as error:
            if error.status != _WRONG_TOKEN:
                raise
            raise module.ConnectionFailedError(str(error)) from error
        finally:
            await pool.close()
