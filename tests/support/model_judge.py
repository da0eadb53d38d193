"""llmock as a judge of model calls: it plays several providers' endpoints, breaks as told, and grades its client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Self

from tests.support.free_port import free_port
from tests.support.waiting import eventually

PACE_MS = 20  # between two chunks


class Judge:
    """llmock as a process of its own, on a free port of this machine."""

    def __init__(self, log: Path) -> None:
        self.address = f"http://127.0.0.1:{free_port()}"
        self._log = log

    def __enter__(self) -> Self:
        port = self.address.rpartition(":")[2]
        serve = ["serve", "--host", "127.0.0.1", "--port", port, "--log-level", "warning"]
        serve += ["--stream-chunk-delay-ms", str(PACE_MS)]
        environ = {key: value for key, value in os.environ.items() if not key.startswith("LLMOCK_")}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", "from llmock.cli import app; app()", *serve],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        eventually(self._is_there)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(10)

    def _is_there(self) -> bool:
        assert self._process.poll() is None, self._log.read_text()
        try:
            self.call("GET", "verdict")
        except urllib.error.URLError:
            return False
        return True

    def call(self, method: str, what: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.address}/_llmock/{what}", method=method, data=data)
        with urllib.request.urlopen(request, timeout=20) as response:
            return json.load(response)

    def script(self, *behaviours: dict[str, Any]) -> None:
        self.call("POST", "reset")
        self.call("POST", "scenario", {"behaviors": list(behaviours)})

    def verdict(self, *, faults: int) -> dict[str, Any]:
        """What it says of the client, after so many faults; nothing may be held against it."""
        found: dict[str, Any] = self.call("GET", "verdict")
        assert found["passed"], found
        assert found["findings"] == []
        assert found["faults_injected"] == faults, found
        return found


def says(text: str) -> dict[str, Any]:
    return {"type": "reply", "text": text}


def fails(status: int, times: int | None = 1, **more: Any) -> dict[str, Any]:
    return {"type": "fail", "status": status, "times": times, **more}


def breaks(kind: str, after_chunks: int = 2, **more: Any) -> dict[str, Any]:
    return {"type": "stream_fault", "kind": kind, "after_chunks": after_chunks, **more}
