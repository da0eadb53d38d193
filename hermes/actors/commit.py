"""Awaitable write and read of a journal, whose own calls never wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hermes.actors.kernel.future import LoopFuture
from hermes.domain.errors import HermesError
from hermes.domain.read.reader import Reader
from hermes.ports.storage import Journal, Transaction

T = TypeVar("T")


async def store(journal: Journal, transaction: Transaction) -> None:
    """Store a transaction, and return when it is on disk. Raises the journal's error."""
    done = LoopFuture()
    journal.commit(transaction, done.set)
    error = await done
    if error is not None:
        raise error


async def look_up(journal: Journal, query: Callable[[Reader], T]) -> T | None:
    """Return the result of a query. Raises the journal's error."""
    done = LoopFuture()

    def settle(found: T | None, error: HermesError | None) -> None:
        done.settle(found, error)

    journal.read(query, settle)
    found: T | None = await done
    return found
