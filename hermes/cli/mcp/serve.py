"""`hermes mcp serve`: pass MCP messages between standard input and output and the daemon.

Each message is one request on the admin socket, so a restarted daemon is used again. Messages are answered in
threads: a client that waits for events can send others meanwhile.
"""

from __future__ import annotations

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from hermes.cli.client import AdminClient, AdminError, connect
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

_AT_ONCE = 32  # messages
_ANSWER_S = 330.0  # longer than any tool waits
_INTERNAL, _PARSE = -32603, -32700


def serve(environ: Mapping[str, str]) -> int:
    """Serve until the input ends. Raises HermesError at the start if there is no daemon."""
    client = connect(environ)
    client.info()
    bridge = _Bridge(client, sys.stdout)
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="mcp") as pool:
        for line in sys.stdin:
            if line.strip():
                pool.submit(bridge.pass_on, line)
    return 0


class _Bridge:
    def __init__(self, client: AdminClient, out: TextIO) -> None:
        self._client = client
        self._out = out
        self._lock = threading.Lock()
        self._cancelled: set[str | int] = set()

    def pass_on(self, line: str) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            self._write(_failure(None, _PARSE, "the line is not JSON"))
            return
        name = message.get("id") if isinstance(message, dict) else None
        if isinstance(message, dict) and message.get("method") == "notifications/cancelled":
            self._cancel(message)
            return
        try:
            answer = self._client.post("/mcp", message, timeout_s=_ANSWER_S)
        except AdminError as error:
            answer = _failure(name, _INTERNAL, str(error))
        except HermesError as error:
            answer = _failure(name, _INTERNAL, f"{error}; start it and try again")
        if answer and name not in self._cancelled:
            self._write(answer)

    def _cancel(self, message: dict[str, Any]) -> None:
        """Note that nobody waits for an answer any more. The request itself ends by itself."""
        params = message.get("params")
        name = params.get("requestId") if isinstance(params, dict) else None
        if isinstance(name, str | int):
            self._cancelled.add(name)

    def _write(self, answer: dict[str, Any]) -> None:
        text = json.dumps(answer, ensure_ascii=True)
        with self._lock:
            self._out.write(f"{text}\n")
            self._out.flush()


def _failure(name: object, code: int, text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": name, "error": {"code": code, "message": text}}
