"""The disk of a simulated machine: the store in memory, which outlives every daemon, and what can befall it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from hermes.domain.errors import HermesError, StorageError, StorageFailedError, StorageFullError
from hermes.domain.ids import Epoch, InboundKey, Seq, SessionId
from hermes.domain.operations import Append, MarkDelivered, RecordDelivery
from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.process.process_record import ProcessRecord
from hermes.domain.records import ContextCarried, LogEntry, TurnStarted
from hermes.domain.session.state import Session
from hermes.domain.turn.submission import Seen
from hermes.ports.storage import Transaction
from tests.support.memory_engine import MemoryEngine


class Disk(MemoryEngine):
    def __init__(self, chance: Random, note: Callable[[str], None], clock: Callable[[], float]) -> None:
        super().__init__(Epoch(0))
        self.full = False
        self.broken = False  # the next write fails, and whether it was done nobody knows
        self.failed = False  # a write of this daemon failed: what it knows may not be what is stored
        self.unnoted = 0  # messages to chats of which it could not be written down that they arrived
        self.slow = False
        self.unreadable = 0.0  # how likely a look fails
        self.is_read = False  # by a daemon, at this moment
        self.written_at: dict[SessionId, float] = {}
        self.begun_at: dict[SessionId, float] = {}  # when its turn was last started, or taken over
        self.witness: Callable[[Transaction], Callable[[], None]] = lambda _: lambda: None  # of what is stored
        self._chance = chance
        self._note = note
        self._clock = clock

    def open(self) -> Disk:
        """For the next daemon."""
        self._epoch = Epoch(self._epoch + 1)
        self.broken = self.failed = False
        return self

    def lose_power(self) -> None:
        """The daemon was killed. What was committed is synced: nothing of it is lost."""

    def heal(self) -> None:
        self.full = self.broken = self.slow = False
        self.unreadable = 0.0

    def delay_s(self) -> float:
        """How long whatever has to do with it takes."""
        if self.slow or self._chance.random() < 0.02:
            return self._chance.uniform(0.05, 2.0)
        return self._chance.uniform(0.0002, 0.006)

    def sessions(self) -> list[Session]:
        return [self._rows[name].head for name in sorted(self._rows)]

    def commit(self, batch: Sequence[Transaction]) -> list[HermesError | None]:
        if self.full or self.broken:
            self.unnoted += sum(isinstance(each, RecordDelivery | MarkDelivered) for done in batch for each in done)
        if self.full:
            raise StorageFullError("the simulated disk is full")
        if self.broken:
            if self._chance.random() < 0.5:
                self._store(batch)
            self.failed = True
            raise StorageFailedError("the simulated disk is broken")
        return self._store(batch)

    def _store(self, batch: Sequence[Transaction]) -> list[HermesError | None]:
        return [self._store_one(transaction) for transaction in batch]

    def _store_one(self, transaction: Transaction) -> HermesError | None:
        stored = self.witness(transaction)
        [outcome] = super().commit([transaction])
        for operation in transaction:
            if isinstance(operation, Append):
                names = " ".join(type(record).__name__ for record in operation.records)
                self._note(f"disk {operation.session} {operation.expected_seq} {names}{_refusal(outcome)}")
                if outcome is None:
                    self.written_at[operation.session] = self._clock()
                    if any(isinstance(record, TurnStarted | ContextCarried) for record in operation.records):
                        self.begun_at[operation.session] = self._clock()
        if outcome is None:
            stored()
        return outcome

    # ------------------------------------------------------------ looks that can fail

    def _look(self) -> None:
        if self.is_read and self.unreadable and self._chance.random() < self.unreadable:
            self._note("disk a look failed")
            raise StorageError("the simulated disk could not be read")

    def head(self, session: SessionId) -> Session | None:
        self._look()
        return super().head(session)

    def log(self, session: SessionId, first: Seq = Seq(0), limit: int | None = None) -> list[LogEntry]:
        self._look()
        return super().log(session, first, limit)

    def outbox(self) -> list[OutboxMessage]:
        self._look()
        return super().outbox()

    def seen(self, key: InboundKey) -> Seen | None:
        self._look()
        return super().seen(key)

    def processes(self) -> list[ProcessRecord]:
        self._look()
        return super().processes()


def _refusal(outcome: HermesError | None) -> str:
    return "" if outcome is None else f" refused: {type(outcome).__name__}"
