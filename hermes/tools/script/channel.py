"""Channel between a script in the sandbox and its tools: a directory with a Unix socket, the stub and the script.

The directory is in the conversation's /tmp, which its other commands can write, too. So every file is created through
a descriptor of the directory, and no link is followed.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from loguru import logger

Handle = Callable[[str, dict[str, Any]], Awaitable[tuple[bool, str]]]  # tool and arguments; returns success and text

PREFIX: Final = ".hermes-script-"
MAX_REQUEST_BYTES: Final = 2 << 20
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class ScriptChannel:
    def __init__(self, tmp: Path, handle: Handle) -> None:
        """`tmp`: the directory that the sandbox shows as /tmp."""
        self._tmp = tmp
        self._handle = handle
        self._lock = asyncio.Lock()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._directory = -1
        self.name = f"{PREFIX}{secrets.token_hex(8)}"

    async def open(self, files: dict[str, str]) -> None:
        """Create the directory with these files and listen. Raises OSError."""
        listener = await asyncio.to_thread(self._make, files)
        self._server = await asyncio.start_unix_server(self._serve, sock=listener, limit=MAX_REQUEST_BYTES)

    def _make(self, files: dict[str, str]) -> socket.socket:
        self._tmp.mkdir(mode=0o700, parents=True, exist_ok=True)
        parent = os.open(self._tmp, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            owner = os.fstat(parent)
            _remove_old(parent)
            os.mkdir(self.name, mode=0o700, dir_fd=parent)
            self._directory = os.open(self.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
        finally:
            os.close(parent)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            for name, text in files.items():
                with os.fdopen(
                    os.open(name, _NEW, mode=0o600, dir_fd=self._directory), "w", encoding="utf-8"
                ) as file:
                    file.write(text)
            listener.bind(f"/proc/self/fd/{self._directory}/socket")  # the real path can be too long for an address
            for name in (*files, "socket"):
                os.chown(name, owner.st_uid, owner.st_gid, dir_fd=self._directory, follow_symlinks=False)
            os.fchown(self._directory, owner.st_uid, owner.st_gid)
        except BaseException:
            listener.close()
            raise
        return listener

    def read(self, name: str, max_bytes: int) -> tuple[str, int]:
        """Return the end of a file in the directory, and its size. Blocking."""
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self._directory)
        except OSError:
            return "", 0
        with os.fdopen(descriptor, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - max_bytes))
            return file.read(max_bytes).decode(errors="replace"), size

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._directory >= 0:
            os.close(self._directory)
            self._directory = -1
            await asyncio.to_thread(_remove, self._tmp, self.name)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while line := await reader.readline():
                ok, text = await self._answer(line)
                writer.write(json.dumps({"ok": ok, "text": text}).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError):  # the script has ended, or sent too much at once
            pass
        except asyncio.CancelledError:
            pass  # the end of the script, or of its call
        except Exception as error:  # noqa: BLE001 - the outermost loop of a connection
            logger.opt(exception=error).error("script: a connection failed")
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, line: bytes) -> tuple[bool, str]:
        try:
            request = json.loads(line)
            tool, arguments = str(request["tool"]), request["arguments"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return False, "The request is not valid."
        if not isinstance(arguments, dict):
            return False, "The arguments are not an object."
        async with self._lock:  # one after the other, also from several threads
            return await self._handle(tool, arguments)


def _remove_old(parent: int) -> None:
    """Remove the directories of scripts that were cut off with their daemon."""
    for name in os.listdir(parent):
        if name.startswith(PREFIX):
            with suppress(OSError):
                shutil.rmtree(name, dir_fd=parent)


def _remove(tmp: Path, name: str) -> None:
    with suppress(OSError):
        parent = os.open(tmp, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            shutil.rmtree(name, dir_fd=parent)
        finally:
            os.close(parent)
