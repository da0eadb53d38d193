"""A journal without threads: what was handed over is stored at the loop's next turn. It can be told to misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from hermes.domain.errors import HermesError, StorageFullError
from hermes.domain.ids import Epoch
from hermes.domain.operations import Append
from hermes.domain.read.reader import Reader
from hermes.ports.storage import Engine, Transaction
from tests.support.memory_engine import MemoryEngine

T = TypeVar("T")


class LoopJournal:
    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = engine or MemoryEngine()
        self.refuse_with: HermesError | None = None  # until taken back
        self.held: list[Callable[[], None]] | None = None  # a list: writes wait there instead of being done
        self._unheard: list[Callable[[], None]] | None = None
        self.poison = ""  # a session whose writes crash whoever asks for them: a bug anywhere in it would
        self.transactions: list[Transaction] = []

    @property
    def full(self) -> str:
        return str(self.refuse_with) if isinstance(self.refuse_with, StorageFullError) else ""

    @property
    def epoch(self) -> Epoch:
        return self.engine.epoch

    @property
    def last_position(self) -> int:
        return self.engine.last_position()

    def commit(self, transaction: Transaction, then: Callable[[HermesError | None], None]) -> None:
        if any(isinstance(each, Append) and each.session == self.poison for each in transaction):
            raise RuntimeError("poisoned")

        def store() -> None:
            if self.refuse_with is not None:
                then(self.refuse_with)
                return
            [outcome] = self.engine.commit([transaction])
            if outcome is None:
                self.transactions.append(transaction)
            then(outcome)

        if self.held is not None:
            self.held.append(store)
        else:
            asyncio.get_running_loop().call_soon(store)

    def release(self) -> None:
        held, self.held = self.held or [], None
        for store in held:
            store()

    def read(self, query: Callable[[Reader], T], then: Callable[[T | None, HermesError | None], None]) -> None:
        def look() -> None:
            try:
                value, error = query(self.engine), None
            except HermesError as failure:
                value, error = None, failure
            if self._unheard is None:
                then(value, error)
            else:
                self._unheard.append(lambda: then(value, error))

        asyncio.get_running_loop().call_soon(look)

    @contextmanager
    def slow_reads(self) -> Iterator[list[Callable[[], None]]]:
        """What is read meanwhile is told when these are called."""
        told: list[Callable[[], None]] = []
        self._unheard = told
        yield told
        self._unheard = None

    async def fetch(self, query: Callable[[Reader], T]) -> T:
        return query(self.engine)
