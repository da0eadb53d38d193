"""A journal without threads: what was handed over is stored at the loop's next turn. It can be told to misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from hermes.errors import HermesError, StorageFullError
from hermes.ports.storage import Append, Engine, Reader, Transaction
from hermes.storage.memory import MemoryEngine
from hermes.types import Epoch

T = TypeVar("T")


class LoopJournal:
    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = engine or MemoryEngine()
        self.refuse_with: HermesError | None = None  # until taken back
        self.held: list[Callable[[], None]] | None = None  # a list: writes wait there instead of being done
        self.poison = ""  # a session whose writes crash whoever asks for them: a bug anywhere in it would
        self.transactions: list[Transaction] = []

    @property
    def full(self) -> str:
        return str(self.refuse_with) if isinstance(self.refuse_with, StorageFullError) else ""

    @property
    def epoch(self) -> Epoch:
        return self.engine.epoch

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
                value = query(self.engine)
            except HermesError as error:
                then(None, error)
            else:
                then(value, None)

        asyncio.get_running_loop().call_soon(look)

    async def fetch(self, query: Callable[[Reader], T]) -> T:
        return query(self.engine)
