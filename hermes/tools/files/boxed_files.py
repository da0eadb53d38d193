"""File access through workers inside sandboxes: one worker for each conversation that uses files.

A worker sees the same files as its conversation's commands. It is stopped after a minute without work, when its
sandbox plan changes, and when a call times out or is cancelled, because reading a file can block forever.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import hermes
from hermes.domain.process.sandbox_launch import Box
from hermes.sandbox.box import start
from hermes.sandbox.sandbox import Sandbox, code_directories
from hermes.sandbox.sandbox_plan import HOME, BadWorkdirError, SandboxPlan
from hermes.tools.files.file_worker import OPEN, receive, send
from hermes.tools.tool import ToolContext, ToolError
from hermes.tools.workplace import Workplace

IDLE_S: Final = 60.0
_CALL_S: Final = 60.0
_MAX_WORKERS: Final = 8
_PROGRAM: Final = "import sys; sys.path.append(sys.argv[1]); from hermes.tools.files.file_worker import main; main()"
_ENVIRONMENT: Final = {"LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


class BoxedFiles:
    """The workers of all conversations. Runs on the event loop."""

    def __init__(
        self,
        sandbox: Sandbox,
        workplace: Workplace,
        *,
        call_s: float = _CALL_S,
    ) -> None:
        self._sandbox = sandbox
        self._workplace = workplace
        self._call_s = call_s
        self._workers: dict[Path, _Worker] = {}

    async def perform(self, context: ToolContext, operation: str, arguments: Mapping[str, Any]) -> str:
        return await self._call(context, operation, arguments, [])

    async def open(self, context: ToolContext, path: str) -> tuple[int, str]:
        """Return a descriptor of the file, which the caller closes, and its real path in the sandbox."""
        descriptors: list[int] = []
        real = await self._call(context, OPEN, {"path": path}, descriptors)
        return descriptors[0], real

    async def box(self, context: ToolContext) -> Box:
        """Return a sandbox for a search program."""
        plan = await asyncio.to_thread(self._plan, context)
        return await asyncio.to_thread(self._sandbox.box, plan)

    async def close(self) -> None:
        workers = tuple(self._workers.values())
        self._workers.clear()
        for worker in workers:
            worker.close()
            await worker.ended()

    async def _call(
        self, context: ToolContext, operation: str, arguments: Mapping[str, Any], descriptors: list[int]
    ) -> str:
        worker = await self._worker(context)
        cwd = await asyncio.to_thread(self._workplace.cwd_of, context.folder, context.role)
        request = {"operation": operation, "arguments": dict(arguments), "cwd": cwd, "home": HOME}
        try:
            async with worker.lock, asyncio.timeout(self._call_s):
                answer = await asyncio.to_thread(worker.exchange, request, descriptors)
        except BaseException as error:
            self._drop(context.folder, worker)
            if isinstance(error, TimeoutError):
                raise ToolError(f"The file operation timed out after {self._call_s:g} s.") from error
            raise
        if answer is None:
            self._drop(context.folder, worker)
            raise ToolError("The file worker in the sandbox stopped. Call the tool again.")
        worker.idle_after(IDLE_S, lambda: self._drop(context.folder, worker))
        if "problem" in answer:
            raise ToolError(_explained(answer["problem"], self._workplace.work_of(context.folder, context.role)))
        text: str = answer["text"]
        return text

    async def _worker(self, context: ToolContext) -> _Worker:
        plan = await asyncio.to_thread(self._plan, context)
        worker = self._workers.get(context.folder)
        if worker is not None and (worker.plan != plan or not worker.running):
            self._drop(context.folder, worker)
            worker = None
        if worker is None:
            if len(self._workers) >= _MAX_WORKERS:
                oldest = next(iter(self._workers))
                self._drop(oldest, self._workers[oldest])
            box = await asyncio.to_thread(self._sandbox.box, plan)
            worker = self._workers[context.folder] = await _Worker.start(plan, box)
        return worker

    def _plan(self, context: ToolContext) -> SandboxPlan:
        """Blocking."""
        work = self._workplace.work_of(context.folder, context.role)
        try:
            place = self._sandbox.place(context.folder, work, readable=context.received)
            return self._sandbox.plan(place, cwd="/", programs=code_directories())
        except BadWorkdirError as error:
            raise ToolError(f"{error}. Choose another directory (terminal.cwd).") from error

    def _drop(self, folder: Path, worker: _Worker) -> None:
        worker.close()
        if self._workers.get(folder) is worker:
            del self._workers[folder]


class _Worker:
    def __init__(self, plan: SandboxPlan, process: Process, connection: socket.socket) -> None:
        self.plan = plan
        self.lock = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._process = process
        self._ours = connection

    @classmethod
    async def start(cls, plan: SandboxPlan, box: Box) -> Self:
        """Start a worker. Call it on the event loop's thread: the sandbox ends with the thread that forked it."""
        ours, theirs = socket.socketpair()
        with theirs:
            packages = str(Path(hermes.__file__).parents[1])
            program = (sys.executable, "-I", "-S", "-c", _PROGRAM, packages)
            process = await start(box, program, environ=_ENVIRONMENT, stdin=theirs.fileno())
        return cls(plan, process, ours)

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    async def ended(self) -> None:
        await self._process.wait()

    def exchange(self, request: Mapping[str, Any], descriptors: list[int]) -> Any:
        """Send a request and return the answer; None if the worker has stopped. Blocking."""
        if self._timer is not None:
            self._timer.cancel()
        try:
            send(self._ours, request)
            return receive(self._ours, descriptors)
        except (OSError, ValueError):
            return None

    def idle_after(self, seconds: float, end: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, end)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with suppress(OSError):
            self._ours.shutdown(socket.SHUT_RDWR)
        self._ours.close()
        with suppress(ProcessLookupError):
            self._process.kill()


def _explained(problem: str, work: str) -> str:
    """Return the error text, with an explanation if the sandbox mounts the path read-only."""
    if os.strerror(30) in problem:  # EROFS
        return f"{problem}: in the sandbox only {work}, /tmp and {HOME} are writable"
    return problem
