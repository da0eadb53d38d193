"""Listening sockets inside sandboxes, made by a helper process (`net_helper`).

The daemon cannot enter a user namespace itself: it has threads. The helper starts with the first sandbox that has a
network and lives as long as the daemon.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from contextlib import suppress
from pathlib import Path
from typing import Final

from hermes.sandbox import net_helper
from hermes.sandbox.plan import PROXY_PORT

_ANSWER_S: Final = 10.0


class Listeners:
    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._helper: Process | None = None
        self._ours: socket.socket | None = None

    async def open(self, init: int) -> socket.socket:
        """A socket that listens on the loopback of the sandbox that `init` leads. Raises OSError."""
        async with self._lock:
            namespace = os.open(f"/proc/{init}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            try:
                connection = await self._connection()
                try:
                    async with asyncio.timeout(_ANSWER_S):
                        return await asyncio.shield(asyncio.to_thread(_asked, connection, namespace))
                except (TimeoutError, OSError, asyncio.CancelledError):
                    await self.close()  # an answer that comes later would belong to another request
                    raise
            finally:
                os.close(namespace)

    async def close(self) -> None:
        if self._ours is not None:
            self._ours.shutdown(socket.SHUT_RDWR)
            self._ours.close()
            self._ours = None
        if self._helper is not None:
            with suppress(ProcessLookupError):
                self._helper.kill()
            await self._helper.wait()
            self._helper = None

    async def _connection(self) -> socket.socket:
        if self._helper is not None and self._helper.returncode is None and self._ours is not None:
            return self._ours
        await self.close()
        ours, theirs = socket.socketpair()
        with theirs:
            self._helper = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", str(Path(net_helper.__file__)), str(PROXY_PORT),
                stdin=theirs.fileno(), stdout=DEVNULL, stderr=DEVNULL, env={}, start_new_session=True,
            )  # fmt: skip
        self._ours = ours
        return ours


def _asked(connection: socket.socket, namespace: int) -> socket.socket:
    socket.send_fds(connection, [b"\0"], [namespace])
    answer, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
    if not descriptors:
        number = answer[0] if answer else 0
        raise OSError(number, f"no socket in the sandbox: {os.strerror(number)}")
    made = socket.socket(fileno=descriptors[0])
    made.setblocking(False)
    return made
