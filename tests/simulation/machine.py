"""The machine of a simulation, as far as background processes go: they run on while daemons come and go, end when
their time has come, and now and then nobody knows afterwards how.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hermes.domain.process.process import (
    Chunk,
    EndReason,
    FailedStart,
    Handle,
    Lost,
    ProcessEnd,
    ProcessSample,
    ProcessSpec,
)
from tests.simulation.outside import Outside
from tests.simulation.virtual_time import Delay, VirtualLoop
from tests.support.judge import Launched

T = TypeVar("T")
LASTING_S = (0.01, 2.0, 15.0, 60.0)
SESSION = "SESSION"  # in a process's environment: whose it is


class Machine:
    """Implements ports.ProcessHost. Its processes write nothing, and say by no descriptor that they have ended."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._ends: dict[str, float] = {}
        self._handles: dict[str, Handle] = {}
        self._killed: set[str] = set()

    def start(self, spec: ProcessSpec) -> Handle | FailedStart:
        outside = self._outside
        if outside.happens(0.1):
            return FailedStart(reason="as chance decided")
        handle = Handle(
            id=spec.id,
            folder=spec.id,
            pid=1000 + len(self._handles),
            started_ticks=1,
            shim_pid=1,
            shim_started_ticks=1,
            boot_id="b",
            started_at=outside.wall(),
            command_hash="",
            terminal=False,
            segment_bytes=1000,
        )
        self._handles[spec.id] = handle
        self._ends[spec.id] = outside.time() + outside.chance.choice(LASTING_S) * outside.chance.random()
        outside.note(f"process {spec.id} began")
        outside.history.add(Launched(process=spec.id, session=spec.environ[SESSION]))
        outside.moment("after an effect")
        return handle

    def find(self, name: str) -> Handle | Lost:
        if name not in self._handles or self._outside.happens(0.1):
            self._handles.pop(name, None)
            return Lost(id=name, reason="its shim was killed")
        return self._handles[name]

    def look(self, handle: Handle) -> ProcessSample:
        ended = self._outside.time() >= self._ends[handle.id]
        reason = EndReason.KILLED if handle.id in self._killed else EndReason.EXITED
        end = ProcessEnd(reason=reason, code=0, ended_at=self._outside.wall()) if ended else None
        return ProcessSample(
            alive=not ended, output_bytes=0, last_output_at=None, cpu_s=self._outside.time(), end=end
        )

    def look_all(self, handles: Sequence[Handle]) -> dict[str, ProcessSample]:
        return {handle.id: self.look(handle) for handle in handles}

    def ports(self, handles: Sequence[Handle]) -> dict[str, tuple[int, ...]]:
        return {}

    def output(self, handle: Handle, offset: int, limit: int) -> Chunk:
        return Chunk(offset=0, data=b"", total=0)

    def tail(self, handle: Handle, limit: int) -> Chunk:
        return Chunk(offset=0, data=b"", total=0)

    def write(self, handle: Handle, data: bytes) -> int:
        return len(data)

    def typed(self, name: str) -> bytes:
        return b""

    def close_input(self, handle: Handle) -> None:
        """Nobody reads it."""

    def kill(self, handle: Handle, grace_s: float = 2.0, why: str = "") -> bool:
        self._killed.add(handle.id)
        self._ends[handle.id] = min(self._ends[handle.id], self._outside.time())
        return True

    def end_fd(self, handle: Handle) -> int | None:
        return None

    def forget(self, handle: Handle | Lost) -> None:
        """What it wrote: nothing."""


class VirtualThreads:
    """Stands for HostThreads: each call is made after a while, and its outcome arrives after another."""

    def __init__(self, *, loop: VirtualLoop, delay: Delay) -> None:
        self._loop = loop
        self._delay = delay

    def run(self, call: Callable[[], T], then: Callable[[T | None, Exception | None], None]) -> None:
        self._loop.call_later(self._delay(), self._call, call, then)

    def _call(self, call: Callable[[], T], then: Callable[[T | None, Exception | None], None]) -> None:
        value, problem = None, None
        try:
            value = call()
        except Exception as error:  # noqa: BLE001 - as an executor hands it over
            problem = error
        self._loop.call_later(self._delay(), then, value, problem)

    async def call(self, call: Callable[[], T]) -> T:
        done = self._loop.create_future()

        def then(value: T | None, error: Exception | None) -> None:
            if not done.done():
                done.set_result(value) if error is None else done.set_exception(error)

        self.run(call, then)
        found: T = await done
        return found
