"""Storage ports: the engine with its transactions, and the journal on the event loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

from hermes.domain.errors import HermesError
from hermes.domain.ids import Epoch
from hermes.domain.operations import Operation
from hermes.domain.read.reader import Reader

T = TypeVar("T")


Transaction: TypeAlias = tuple[Operation, ...]  # all or nothing


class Engine(Reader, Protocol):
    """A store. One thread writes; any thread reads."""

    @property
    def epoch(self) -> Epoch: ...
    def commit(self, batch: Sequence[Transaction]) -> list[HermesError | None]:
        """Commit the batch durably. A refused transaction stores nothing and does not affect the others.

        Raises StorageFullError if nothing was stored, StorageFailedError if the engine must not be used again.
        """

    def last_position(self) -> int:
        """Return the position of the newest record, even if it was erased; see `tail`. Does not block."""

    def backup(self, target: Path) -> None: ...
    def close(self) -> None: ...


class Journal(Protocol):
    """The engine on the event loop. No method waits; `then` is called later, on the loop."""

    @property
    def epoch(self) -> Epoch: ...
    @property
    def last_position(self) -> int:
        """Return the position of the newest record of all sessions."""

    @property
    def full(self) -> str:
        """Return why the last write was refused for lack of space; empty: it was not."""

    def commit(self, transaction: Transaction, then: Callable[[HermesError | None], None]) -> None: ...
    def read(self, query: Callable[[Reader], T], then: Callable[[T | None, HermesError | None], None]) -> None: ...
    async def fetch(self, query: Callable[[Reader], T]) -> T:
        """Return the result of a query. For services; an actor uses `read`."""
