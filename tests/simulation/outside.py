"""What a simulated daemon does not know of: the time, chance, the machine that it runs on, and what is written down.

Everything outside the daemon (people, operators, accidents) is a callback on one queue, in virtual time; the daemon
of the moment has an event loop of its own, which runs up to the next of them. Killing it is to leave that loop.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from math import inf
from random import Random
from typing import Any, Protocol

from tests.simulation.disk import Disk
from tests.simulation.virtual_time import RESOLUTION_S, Killed, VirtualLoop
from tests.support.judge import Complaint, Crashed, History

START = 1_800_000_000.0


class Process(Protocol):
    """The daemon of the moment, as the outside sees it."""

    loop: VirtualLoop

    def die(self) -> None: ...


class Outside:
    def __init__(self, seed: int, disk: type[Disk] = Disk) -> None:
        self.seed = seed
        self.chance = Random(seed)
        self.now = 0.0
        self.set_by = 0.0  # how far the wall clock was set since the beginning
        self.unused_before = 0.0  # what was said later is not deleted as unused, by the wall clock
        self.faulty = True
        self.history = History()
        self.trace: list[str] = []
        self.process: Process | None = None
        self.kill_at = ""  # the moment at which the daemon is to die
        self.frozen_at = self.frozen_until = 0.0  # the process is stopped in between, as by SIGSTOP
        self.on_killed: Callable[[], None] = lambda: None
        self.disk = disk(self.chance, self.note, self.time)
        self._running = False
        self._numbers: Counter[str] = Counter()
        self._queue: list[tuple[float, int, Callable[..., object], tuple[Any, ...]]] = []
        self._places = count()

    # ------------------------------------------------------------ time

    def time(self) -> float:
        return self.process.loop.time() if self._running and self.process is not None else self.now

    def wall(self) -> float:
        return START + self.time() + self.set_by

    def later(self, delay_s: float, callback: Callable[..., object], *args: Any) -> None:
        when = self.time() + delay_s
        heappush(self._queue, (when, next(self._places), callback, args))
        if self._running and self.process is not None:
            self.process.loop.call_at(when, self.process.loop.stop)

    def run_until(self, when: float) -> None:
        while self.now < when - RESOLUTION_S:
            self._pass(min(when, self._queue[0][0] if self._queue else inf))
            while self._queue and self._queue[0][0] <= self.now + RESOLUTION_S:
                _, _, callback, args = heappop(self._queue)
                callback(*args)

    def _pass(self, target: float) -> None:
        process = self.process
        if process is None or self.now < self.frozen_until:
            self.now = max(self.now, target)
            return
        process.loop.jump(self.now)
        self._running = True
        try:
            process.loop.run_until(target)
        except Killed:
            self._running = False
            self.now = max(self.now, process.loop.time())
            self.kill()
        finally:
            self._running = False
        self.now = max(self.now, process.loop.time())

    # ------------------------------------------------------------ the process

    def moment(self, name: str) -> None:
        """The daemon is at a place where it can be killed exactly."""
        if self.kill_at == name:
            self.kill_at = ""
            self.note(f"killed {name}")
            raise Killed

    def kill(self) -> None:
        if self.process is None:
            return
        self.note("killed")
        self.history.add(Crashed(at=self.now))
        process, self.process = self.process, None
        process.die()
        self.disk.lose_power()
        self.on_killed()

    # ------------------------------------------------------------ chance, and what is written down

    def happens(self, probability: float) -> bool:
        """Only while faults are on."""
        return self.faulty and self.chance.random() < probability

    def number(self, kind: str) -> str:
        self._numbers[kind] += 1
        return f"{kind}{self._numbers[kind]}"

    def note(self, what: str) -> None:
        self.trace.append(f"{self.time():.6f} {what}")

    def complain(self, problem: str) -> None:
        self.note(f"complaint {problem}")
        self.history.add(Complaint(problem=problem))

    def digest(self) -> str:
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()
