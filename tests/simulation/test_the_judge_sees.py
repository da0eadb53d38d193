"""The simulation finds bugs: with a store that breaks one promise, some seed says so, by the rule that it breaks.

Each broken store does what a mistake elsewhere would do: acknowledge before it is synced, forget what was seen, what
waits, what is open or what is owed, take a call with effects for a harmless one, change the order.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from hermes.domain.errors import HermesError
from hermes.domain.ids import SessionId
from hermes.domain.operations import Append, Enqueue, Operation, PutProcess, RecordDelivery
from hermes.domain.session import acceptance, calls, lifecycle
from hermes.domain.session.state import Session
from hermes.domain.turn.tool_call import Effect
from hermes.ports.storage import Transaction
from tests.simulation.disk import Disk
from tests.simulation.run import run

SEEDS = range(200)
TABLES = ("_rows", "_log", "_keys", "_inbox", "_order", "_outbox", "_sent")


class Unsynced(Disk):
    """A commit is answered before it is synced: a kill takes the last one back."""

    def commit(self, batch: Sequence[Transaction]) -> list[HermesError | None]:
        self.before = {name: copy.copy(getattr(self, name)) for name in TABLES}
        return super().commit(batch)

    def lose_power(self) -> None:
        for name, table in getattr(self, "before", {}).items():
            setattr(self, name, table)


class Changing(Disk):
    """Stores or shows something else than it was given."""

    written: Callable[[Append], Append] = staticmethod(lambda append: append)
    shown: Callable[[Session], Session] = staticmethod(lambda head: head)

    def commit(self, batch: Sequence[Transaction]) -> list[HermesError | None]:
        return super().commit([tuple(map(self._change, transaction)) for transaction in batch])

    def _change(self, operation: Operation) -> Operation:
        return type(self).written(operation) if isinstance(operation, Append) else operation

    def head(self, session: SessionId) -> Session | None:
        head = super().head(session)
        return type(self).shown(head) if head is not None and self.is_read else head


class NothingOwed(Disk):
    """Replies are not kept until they are confirmed."""

    def commit(self, batch: Sequence[Transaction]) -> list[HermesError | None]:
        kept = [tuple(each for each in transaction if not isinstance(each, Enqueue)) for transaction in batch]
        return super().commit(kept)


class NothingDoubtful(Disk):
    """That a message is on its way to a chat is not noted."""

    def commit(self, batch: Sequence[Transaction]) -> list[HermesError | None]:
        return super().commit([tuple(map(self._sure, transaction)) for transaction in batch])

    def _sure(self, operation: Operation) -> Operation:
        return replace(operation, sending=False) if isinstance(operation, RecordDelivery) else operation


class NothingBegun(Disk):
    """That a process was begun, and what became of it, is not kept."""

    def commit(self, batch: Sequence[Transaction]) -> list[HermesError | None]:
        kept = [tuple(each for each in transaction if not isinstance(each, PutProcess)) for transaction in batch]
        return super().commit(kept)


class NothingSeen(Changing):
    written = staticmethod(lambda append: replace(append, seen=None))


class NothingPending(Changing):
    written = staticmethod(lambda append: replace(append, pending=False))

    def pending(self) -> list[SessionId]:
        return []


class NoQueue(Changing):
    shown = staticmethod(lambda head: replace(head, queue=()))


class TurnedQueue(Changing):
    shown = staticmethod(lambda head: replace(head, queue=head.queue[::-1]))


class Miscounting(Changing):
    written = staticmethod(lambda append: replace(append, head=replace(append.head, turns=append.head.turns + 1)))


def _harmless(head: Session) -> Session:
    if head.turn is None:
        return head
    calls = tuple(replace(call, effect=Effect.PURE) for call in head.turn.calls)
    return replace(head, turn=replace(head.turn, calls=calls))


class Harmless(Changing):
    shown = staticmethod(_harmless)


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (Unsynced, "an acknowledged message is never lost"),
        (NothingSeen, "one message is at most one turn"),
        (NothingPending, "an accepted turn ends, once"),
        (NoQueue, "an accepted turn ends, once"),
        (TurnedQueue, "order is kept"),
        (Harmless, "effects happen at most once, and recorded"),
        (NothingOwed, "one final reply per turn"),
        (NothingDoubtful, "one final reply per turn"),
        (NothingBegun, "the end of a process is told, once"),
        (Miscounting, "the log gives the same state as the row"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_store_that_breaks_a_promise_is_found_out(broken: type[Disk], rule: str) -> None:
    for seed in SEEDS:
        if rule in {violation.rule for violation in run(seed, broken).violations}:
            print(f"found out: {broken.__name__} by seed {seed}")
            return
    pytest.fail(f"{len(SEEDS)} seeds did not notice {broken.__name__}")


def test_an_approval_by_somebody_who_may_not_approve_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (acceptance, calls):
        monkeypatch.setattr(module, "may_answer", lambda *_: True)
    for seed in SEEDS:
        if "what needs approval runs only when it was given" in {each.rule for each in run(seed).violations}:
            print(f"found out: anybody may answer, by seed {seed}")
            return
    pytest.fail(f"{len(SEEDS)} seeds did not notice that anybody may answer")


def test_deletion_of_a_conversation_in_use_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "is_unused", lambda *_: True)
    for seed in SEEDS:
        if any("was deleted as unused" in each.detail for each in run(seed).violations):
            print(f"found out: a conversation in use was deleted, by seed {seed}")
            return
    pytest.fail(f"{len(SEEDS)} seeds did not notice that conversations in use are deleted")
