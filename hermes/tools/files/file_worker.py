"""Worker program that reads and changes files inside a sandbox, for one conversation.

    python -I -S -c ... PACKAGES      a stream socket on descriptor 0

Requests and answers are JSON with a length prefix. The worker sees the same files as the conversation's commands, so
both follow one rule, and no path is checked before its use. The answer to `open` carries the file's descriptor.
"""

from __future__ import annotations

import json
import os
import socket
import stat
from typing import Any

from hermes.tools.files.file_operations import Operation, perform
from hermes.tools.tool import ToolError

OPEN = "open"
_LENGTH_BYTES = 4


class _Names:
    """Path resolution as in a shell in the same sandbox."""

    def __init__(self, cwd: str, home: str) -> None:
        self._cwd = cwd
        self._home = home

    def resolve(self, path: str, *, writing: bool) -> str:  # noqa: ARG002 - the mounts decide
        if not path.strip():
            raise ToolError("The path is empty.")
        if "\0" in path:
            raise ToolError("The path contains a NUL character.")
        if path == "~" or path.startswith("~/"):
            path = self._home + path[1:]
        try:
            return os.path.realpath(os.path.join(self._cwd, path))  # noqa: PTH118 - Path.resolve fails on loops
        except ValueError:
            raise ToolError("The path contains characters that are not allowed in file names.") from None

    def shown(self, real: str) -> str:
        cwd = os.path.realpath(self._cwd)
        return os.path.relpath(real, cwd) if real.startswith(f"{cwd}/") else real


def main() -> None:
    daemon = socket.socket(fileno=0)
    while (request := receive(daemon)) is not None:
        descriptors: list[int] = []
        try:
            answer = {"text": _performed(request, descriptors)}
        except ToolError as error:
            answer = {"problem": str(error)}
        except OSError as error:
            answer = {"problem": _error_text(error)}
        send(daemon, answer, descriptors)
        for each in descriptors:
            os.close(each)


def _performed(request: dict[str, Any], descriptors: list[int]) -> str:
    names = _Names(request["cwd"], request["home"])
    if request["operation"] == OPEN:
        real = names.resolve(request["arguments"]["path"], writing=False)
        descriptors.append(_opened(real))
        return real
    return perform(Operation(request["operation"]), request["arguments"], names)


def _opened(real: str) -> int:
    descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ToolError(f"{real} is not a regular file.")
    return descriptor


def _error_text(error: OSError) -> str:
    where = f"{os.fsdecode(error.filename)}: " if error.filename is not None else ""
    return f"{where}{error.strerror or error}"


def send(connection: socket.socket, value: object, descriptors: list[int] | None = None) -> None:
    data = json.dumps(value).encode()
    head = len(data).to_bytes(_LENGTH_BYTES, "big")
    if descriptors:
        socket.send_fds(connection, [head], descriptors)
    else:
        connection.sendall(head)
    connection.sendall(data)


def receive(connection: socket.socket, descriptors: list[int] | None = None) -> Any:
    """Return the next value; None at the end. Received descriptors are added to the list."""
    head, given, _, _ = socket.recv_fds(connection, _LENGTH_BYTES, 1)
    if descriptors is not None:
        descriptors += given
    while 0 < len(head) < _LENGTH_BYTES:
        head += connection.recv(_LENGTH_BYTES - len(head))
    if not head:
        return None
    data = bytearray()
    size = int.from_bytes(head, "big")
    while len(data) < size:
        piece = connection.recv(min(1 << 20, size - len(data)))
        if not piece:
            return None
        data += piece
    return json.loads(data)
