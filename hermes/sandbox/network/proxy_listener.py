"""Listening sockets inside sandboxes, made by a helper process (`net_helper`).

The daemon cannot enter a user namespace itself: it has threads. The helper starts with the first sandbox that has a
network and runs as long as the daemon.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from hermes.sandbox.network import net_helper
from hermes.sandbox.sandbox_plan import PROXY_PORT

_ANSWER_S: Final = 10.0


class Listeners:
    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._helper: _Helper | None = None

    async def open(self, init: int) -> socket.socket:
        """Return a socket that listens on the loopback of the sandbox of `init`. Raises OSError."""
        async with self._lock:
            try:
                async with asyncio.timeout(_ANSWER_S):
                    return await asyncio.to_thread(self._opened, init)
            except (TimeoutError, OSError, asyncio.CancelledError):
                await self.close()  # an answer that comes later would belong to another request
                raise

    async def close(self) -> None:
        if (helper := self._helper) is not None:
            self._helper = None
            await asyncio.shield(asyncio.to_thread(helper.close))

    def _opened(self, init: int) -> socket.socket:
        if self._helper is None or not self._helper.is_alive:
            self._helper = _Helper()
        namespace = os.open(f"/proc/{init}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _asked(self._helper.connection, namespace)
        finally:
            os.close(namespace)


class _Helper:
    def __init__(self) -> None:
        self.connection, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-I", "-S", str(Path(net_helper.__file__)), str(PROXY_PORT)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                start_new_session=True,
            )

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)  # unblocks a thread that waits for an answer
        self.connection.close()
        self._process.kill()
        self._process.wait()


def _asked(connection: socket.socket, namespace: int) -> socket.socket:
    socket.send_fds(connection, [b"\0"], [namespace])
    answer, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
    if not descriptors:
        number = answer[0] if answer else 0
        raise OSError(number, f"could not open a socket in the sandbox: {os.strerror(number)}")
    made = socket.socket(fileno=descriptors[0])
    made.setblocking(False)
    return made
