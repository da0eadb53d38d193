"""Registry of background processes: the list that all users see.

The supervisor adds and removes rows, and each process actor writes its own row. A running process is shown as of the
last heartbeat that was received from its actor, an ended one as its record says. Use it on the loop only.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hermes.actors.kernel.future import LoopFuture
from hermes.domain.ids import SessionId
from hermes.domain.process.process_record import Heartbeat, ProcessView
from hermes.domain.process.process_state import ProcessRow


class ProcessRegistry:
    def __init__(self) -> None:
        self._rows: dict[str, ProcessRow] = {}
        self._received: dict[str, ProcessView] = {}  # last heartbeats, of running processes; first: as registered
        self._waiting: dict[str, list[LoopFuture]] = {}
        self._hearing: Counter[str] = Counter()
        self.filled = asyncio.Event()  # what ran before this daemon is on it

    def get(self, process: str) -> ProcessRow | None:
        return self._rows.get(process)

    def __getitem__(self, process: str) -> ProcessRow:
        return self._rows[process]

    def __iter__(self) -> Iterator[ProcessRow]:
        return iter(tuple(self._rows.values()))

    def view(self, process: str) -> ProcessView:
        return self._shown(self._rows[process])

    def _shown(self, row: ProcessRow) -> ProcessView:
        return self._received[row.record.id] if row.runs else row.view

    def receive(self, heartbeat: Heartbeat) -> None:
        """Keep a heartbeat. Called by the session or the directory, never by the sender."""
        if heartbeat.process.id in self._rows:
            self._received[heartbeat.process.id] = heartbeat.process

    def register(self, row: ProcessRow) -> None:
        """Add a process, which is shown like this until its first heartbeat."""
        self._received[row.record.id] = row.view
        self.put(row)

    def put(self, row: ProcessRow) -> None:
        self._rows[row.record.id] = row
        if not row.runs:
            self._answer_waiters(row.record.id)

    def drop(self, process: str) -> None:
        self._rows.pop(process, None)
        self._received.pop(process, None)
        self._answer_waiters(process)

    def ended(self, process: str) -> LoopFuture:
        """Settled when it has ended, or is gone from the board."""
        future = LoopFuture()
        row = self._rows.get(process)
        if row is None or not row.runs:
            future.settle(None)
        else:
            self._waiting.setdefault(process, []).append(future)
        return future

    @contextmanager
    def hearing(self, process: str) -> Iterator[None]:
        """Meanwhile its conversation waits for its end, and needs no message of its own to hear of it."""
        self._hearing[process] += 1
        try:
            yield
        finally:
            self._hearing[process] -= 1
            self._hearing += Counter()  # without those that are zero

    def is_heard(self, process: str) -> bool:
        return process in self._hearing

    def give_up(self, process: str, future: LoopFuture) -> None:
        """Stop waiting for the end of a process."""
        waiting = self._waiting.get(process, [])
        if future in waiting:
            waiting.remove(future)
        if not waiting:
            self._waiting.pop(process, None)

    def views(self, chosen: Callable[[ProcessRow], bool]) -> tuple[ProcessView, ...]:
        """The oldest first."""
        rows = sorted(filter(chosen, self._rows.values()), key=lambda row: (row.record.started_at, row.record.id))
        return tuple(map(self._shown, rows))

    def running(self, root: SessionId | None = None) -> int:
        return sum(row.runs and root in (None, row.record.root) for row in self._rows.values())

    def _answer_waiters(self, process: str) -> None:
        for future in self._waiting.pop(process, ()):
            future.settle(None)
