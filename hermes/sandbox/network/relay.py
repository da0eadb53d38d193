"""Relay of bytes between two sockets, with one fixed buffer per direction."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

_CHUNK = 128 * 1024  # 64 kB cost a fifth more processor time per MB


class Flow:
    """Copy of one direction.

    Bytes are read only after those before them were handed to the kernel: a slow reader slows its sender down.
    """

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self._source = source
        self._target = target
        self.bytes = 0

    async def run(self, idle: asyncio.Timeout, idle_s: float, limit: int | None = None) -> None:
        """Copy until the source ends, and pass its end on; or until `limit` bytes were copied."""
        loop = asyncio.get_running_loop()
        buffer = memoryview(bytearray(_CHUNK))
        while limit is None or limit > 0:
            size = await loop.sock_recv_into(self._source, buffer if limit is None else buffer[:limit])
            if not size:
                self._target.shutdown(socket.SHUT_WR)
                return
            await loop.sock_sendall(self._target, buffer[:size])
            self.bytes += size
            limit = None if limit is None else limit - size
            idle.reschedule(loop.time() + idle_s)
            await asyncio.sleep(0)  # neither call above yields while both sockets are ready


class Relay:
    """Both directions of a connection. It ends when they have, when one fails, or when nothing moved for `idle_s`."""

    def __init__(self, client: socket.socket, server: socket.socket, *, idle_s: float) -> None:
        self.up = Flow(client, server)
        self.down = Flow(server, client)
        self._idle_s = idle_s

    async def tunnel(self) -> None:
        """Relay a tunnel. The end of one direction is passed on, and the other goes on."""
        try:
            async with asyncio.timeout(self._idle_s) as idle, asyncio.TaskGroup() as group:
                group.create_task(self.up.run(idle, self._idle_s))
                group.create_task(self.down.run(idle, self._idle_s))
        except* OSError:  # a reset, or idle for too long: the end of a connection like any other
            pass

    async def exchange(self, body_bytes: int | None) -> None:
        """Relay one request's body and its response. It is over when the server has ended its response."""
        with suppress(OSError):  # as above
            async with asyncio.timeout(self._idle_s) as idle:
                upload = asyncio.create_task(self.up.run(idle, self._idle_s, body_bytes))
                try:
                    await self.down.run(idle, self._idle_s)
                finally:  # a server may answer without having read the body
                    upload.cancel()
                    await asyncio.wait([upload])
                    _ = upload.cancelled() or upload.exception()  # a failed upload shows in the server's answer
