"""A write to wait for, on top of a journal that never waits."""

from __future__ import annotations

from hermes.actors.future import LoopFuture
from hermes.ports.storage import Journal, Transaction


async def store(journal: Journal, transaction: Transaction) -> None:
    """Returns when it is on disk. Raises what it was refused with."""
    done = LoopFuture()
    journal.commit(transaction, done.set)
    error = await done
    if error is not None:
        raise error
