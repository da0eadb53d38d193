"""A driver as a process: the judge sends it asks and reads its answers, each with a deadline."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.clients.drivers.protocol import Answer, Ask

ROOT = Path(__file__).parents[2]
READY_WITHIN_S = 300.0  # some clients import for long, and Open WebUI starts a server
ANSWER_WITHIN_S = 120.0


class DriverError(Exception):
    """The client failed: the message is its own error."""


class ClientLimit(Exception):  # noqa: N818 - an explanation, not a failure
    """The client has no way to do this."""


class DriverProcess:
    def __init__(self, command: list[str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="client-")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HERMES_", "OPENAI_"))}
        home = {"HOME": self._folder.name, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
        self._command = command
        self._environ = {**kept, **home}
        self._lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._process: subprocess.Popen[str] | None = None

    @property
    def _log(self) -> Path:
        return Path(self._folder.name) / "driver.log"

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder.name,
                env=self._environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()
        try:
            self._next(READY_WITHIN_S)
        except DriverError:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._folder.cleanup()

    @property
    def alive(self) -> bool:
        assert self._process is not None
        return self._process.poll() is None

    def ask(self, ask: Ask) -> Answer:
        self.begin(ask)
        return self.answer()

    def begin(self, ask: Ask) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(asdict(ask)) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise DriverError(f"the driver has ended: {self.log()}") from None

    def first_chunk(self) -> None:
        """Wait for the first text of a stream."""
        line = self._next(ANSWER_WITHIN_S)
        if "chunk" not in line:
            raise DriverError(line.get("error") or f"the answer came without a first chunk: {line}")

    def answer(self) -> Answer:
        line = self._next(ANSWER_WITHIN_S)
        while "chunk" in line:
            line = self._next(ANSWER_WITHIN_S)
        if "limit" in line:
            raise ClientLimit(line["limit"])
        if "error" in line:
            raise DriverError(line["error"])
        return Answer(**line)

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-2000:]

    def _next(self, within_s: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=within_s)
        except queue.Empty:
            self._kill()
            raise DriverError(f"the client gave no answer within {within_s:g} s") from None
        if line is None:
            raise DriverError(f"the driver has ended: {self.log()}")
        return line

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def _kill(self) -> None:
        """End the driver with everything it started: its session is its process group."""
        assert self._process is not None
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
