"""Storage: what can be asked of the journal, what it answers, and who provides it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

from hermes.domain.errors import HermesError
from hermes.domain.operations import Operation
from hermes.domain.read.reader import Reader
from hermes.domain.types import (
    Epoch,
)

T = TypeVar("T")


Transaction: TypeAlias = tuple[Operation, ...]  # all or nothing


class Engine(Reader, Protocol):
    """A store. Writes come from one thread only; reads from any."""

    @property
    def epoch(self) -> Epoch: ...
    def commit(self, batch: Sequence[Transaction]) -> list[HermesError | None]:
        """All of the batch in one durable commit; a refused transaction leaves no trace and spares the others.

        Raises StorageFullError (nothing of the batch is stored) or StorageFailedError (stop using it).
        """

    def last_position(self) -> int:
        """The position of the newest record, also after it was erased; see `tail`. Does not block."""

    def backup(self, target: Path) -> None: ...
    def close(self) -> None: ...


class Journal(Protocol):
    """The engine as the event loop sees it: nothing here waits; `then` is called later, on the loop."""

    @property
    def epoch(self) -> Epoch: ...
    def commit(self, transaction: Transaction, then: Callable[[HermesError | None], None]) -> None: ...
    def read(self, query: Callable[[Reader], T], then: Callable[[T | None, HermesError | None], None]) -> None: ...
