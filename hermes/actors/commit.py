"""A write and a read to wait for, on top of a journal that never waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hermes.actors.kernel.future import LoopFuture
from hermes.domain.errors import HermesError
from hermes.domain.read.reader import Reader
from hermes.ports.storage import Journal, Transaction

T = TypeVar("T")


async def store(journal: Journal, transaction: Transaction) -> None:
    """Returns when it is on disk. Raises what it was refused with."""
    done = LoopFuture()
    journal.commit(transaction, done.set)
    error = await done
    if error is not None:
        raise error


async def look_up(journal: Journal, query: Callable[[Reader], T]) -> T | None:
    """Raises what kept it from being read."""
    done = LoopFuture()

    def settle(found: T | None, error: HermesError | None) -> None:
        done.settle(found, error)

    journal.read(query, settle)
    found: T | None = await done
    return found
