"""Journal: a single writer on its own thread, and its interface for the event loop.

Group commit: the writer stores all waiting transactions in one commit and answers them together. So transactions that
arrive during a sync share the next one. Every `then` is called exactly once, on the loop. A full disk refuses one
batch; a failed disk refuses everything from then on.
"""

from __future__ import annotations

import asyncio
import queue
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from loguru import logger

from hermes.actors.kernel.ref import ThreadingActor
from hermes.domain.errors import HermesError, StoppingError, StorageError, StorageFailedError, StorageFullError
from hermes.domain.ids import Epoch
from hermes.domain.operations import Append, SetAside
from hermes.domain.read.reader import Reader
from hermes.domain.records import Amended, ContextCarried, MessageReceived, ModelReplied, ToolFinished, TurnFinished
from hermes.ports.storage import Engine, Journal, Transaction
from hermes.system.crash_point import crash_at

T = TypeVar("T")
Then = Callable[[HermesError | None], None]
Waiting = tuple[Transaction, Then, int]  # the last item: approximate size in bytes
Answers = deque[tuple[Then, HermesError | None]]

BATCH_TRANSACTIONS: Final = 1024
BATCH_BYTES: Final = 8 * 2**20
READERS: Final = 2


class Flush(NamedTuple):
    """Message to the writer: transactions wait."""


class Backlog:
    """Queue of transactions: the loop adds, the writer takes."""

    def __init__(self, *, batch_transactions: int = BATCH_TRANSACTIONS, batch_bytes: int = BATCH_BYTES) -> None:
        self._items: deque[Waiting] = deque()
        self._announced = False
        self._batch_transactions = batch_transactions
        self._batch_bytes = batch_bytes

    def add(self, item: Waiting) -> bool:
        """Add a transaction. Return whether the writer must be notified."""
        self._items.append(item)
        told, self._announced = self._announced, True
        return not told

    def take(self) -> list[Waiting]:
        self._announced = False  # before the queue is read: later items are announced again
        batch: list[Waiting] = []
        room = self._batch_bytes
        for _ in range(min(len(self._items), self._batch_transactions)):
            item = self._items.popleft()
            batch.append(item)
            room -= item[2]
            if room <= 0:
                break
        return batch


class JournalWriter(ThreadingActor):
    """The only writer. After a disk failure it never writes again and refuses everything."""

    def __init__(
        self,
        engine: Engine,
        backlog: Backlog,
        answer: Callable[[Answers], None],
        on_fatal: Callable[[StorageFailedError], None],
    ) -> None:
        super().__init__()
        self._engine = engine
        self._backlog = backlog
        self._answer = answer
        self._on_fatal = on_fatal
        self._failure: StorageFailedError | None = None

    @staticmethod
    def _create_actor_inbox() -> queue.SimpleQueue[Any]:
        """Wakes the thread at a fraction of the cost of pykka's `queue.Queue`, which is written in Python."""
        return queue.SimpleQueue()

    def on_receive(self, message: Flush) -> None:  # noqa: ARG002 - the message has no content
        while batch := self._backlog.take():
            failed_before = self._failure
            transactions, thens, _ = zip(*batch, strict=True)
            outcomes = self._commit(transactions)
            self._answer(deque(zip(thens, outcomes, strict=True)))
            if self._failure and not failed_before:
                self._on_fatal(self._failure)

    def _commit(self, batch: Sequence[Transaction]) -> Sequence[HermesError | None]:
        if self._failure is None:
            try:
                crash_at("before", batch)
                outcomes = self._engine.commit(batch)
                crash_at("after", batch)
                return outcomes  # noqa: TRY300 - reads best where it is made
            except StorageFailedError as error:
                self._failure = error
            except HermesError as error:  # a full disk: the next batch may fit
                return [error] * len(batch)
            except BaseException as error:  # noqa: BLE001 - callers must be answered after any error
                logger.opt(exception=error).error("journal: the writer failed")
                self._failure = StorageFailedError(f"the writer failed unexpectedly ({type(error).__name__})")
        return [self._failure] * len(batch)


class WriterRef(Protocol):
    """Reference to the writer, as the loop uses it. A simulation has a writer without a thread."""

    def tell(self, message: Flush) -> None: ...
    def stop(self) -> object: ...  # returns when all waiting transactions are stored


def _threads(name: str) -> Executor:
    return ThreadPoolExecutor(READERS, thread_name_prefix=name)


class ActorJournal(Journal):
    """Journal for the event loop on which it is created."""

    def __init__(
        self,
        engine: Engine,
        *,
        on_fatal: Callable[[StorageFailedError], None],
        backlog: Backlog | None = None,
        start_writer: Callable[..., WriterRef] = JournalWriter.start,
        start_readers: Callable[[str], Executor] = _threads,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._engine = engine
        self._backlog = backlog or Backlog()
        self._waiting = 0
        self._full = ""
        self._closing = False
        self._reads: set[Future[None]] = set()
        self._pool = start_readers("journal-reader")
        self._outside = start_readers("journal-outside")
        self._writer = start_writer(
            engine,
            self._backlog,
            answer=lambda answers: self._soon(self._answer, answers),
            on_fatal=lambda failure: self._soon(on_fatal, failure),
        )

    @property
    def epoch(self) -> Epoch:
        return self._engine.epoch

    @property
    def last_position(self) -> int:
        """Position of the newest record of all sessions."""
        return self._engine.last_position()

    @property
    def full(self) -> str:
        return self._full

    @property
    def waiting(self) -> int:
        """Number of transactions without an answer."""
        return self._waiting

    def commit(self, transaction: Transaction, then: Then) -> None:
        if self._closing:
            self._loop.call_soon(then, _stopping())
            return
        size_bytes = _size_bytes(transaction)
        self._waiting += 1
        if self._backlog.add((transaction, then, size_bytes)):
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Notify the writer. It gets all transactions of a round of the event loop together, which saves commits."""
        if not self._closing:
            self._writer.tell(Flush())

    def read(self, query: Callable[[Reader], T], then: Callable[[T | None, HermesError | None], None]) -> None:
        self._submit(self._pool, query, then)

    def _submit(
        self,
        pool: Executor,
        query: Callable[[Reader], T],
        then: Callable[[T | None, HermesError | None], None],
    ) -> None:
        if self._closing:
            self._loop.call_soon(then, None, _stopping())
            return
        read = pool.submit(self._read, query, then)
        self._reads.add(read)
        read.add_done_callback(self._reads.discard)

    async def fetch(self, query: Callable[[Reader], T]) -> T:
        """Return the result of a query. A slow query delays other callers of this method, but no session."""
        result: asyncio.Future[T] = self._loop.create_future()

        def settle(value: T | None, error: HermesError | None) -> None:
            if result.cancelled():
                return
            if error:
                result.set_exception(error)
            else:
                result.set_result(value)  # type: ignore[arg-type]

        self._submit(self._outside, query, settle)
        return await result

    async def close(self) -> None:
        """Store and answer all waiting transactions, and end the threads. The engine stays open."""
        self._closing = True
        self._writer.tell(Flush())  # of this round
        await asyncio.wrap_future(self._pool.submit(self._writer.stop))
        await asyncio.gather(*(asyncio.wrap_future(read) for read in tuple(self._reads)))
        self._pool.shutdown(wait=False)  # all reads have ended
        self._outside.shutdown(wait=False)

    def _answer(self, answers: Answers) -> None:
        try:
            while answers:
                then, outcome = answers.popleft()
                self._waiting -= 1
                self._full = str(outcome) if isinstance(outcome, StorageFullError) else ""
                then(outcome)
        finally:
            if answers:  # a callback raised, which the loop reports; call the others anyway
                self._loop.call_soon(self._answer, answers)

    def _read(self, query: Callable[[Reader], T], then: Callable[[T | None, HermesError | None], None]) -> None:
        try:
            value = query(self._engine)
        except HermesError as error:
            self._soon(then, None, error)
        except BaseException as error:  # noqa: BLE001 - callers must be answered after any error
            logger.opt(exception=error).error("journal: a read failed")
            self._soon(then, None, StorageError(f"a read failed unexpectedly ({type(error).__name__})"))
        else:
            self._soon(then, value, None)

    def _soon(self, callback: Callable[..., object], *arguments: Any) -> None:
        self._loop.call_soon_threadsafe(callback, *arguments)


def _stopping() -> StoppingError:
    return StoppingError("the journal is closed: nothing more is read or written")


def _size_bytes(transaction: Transaction) -> int:
    """Return the approximate size of a transaction: its messages, the only part that can be large."""
    size = 0
    for operation in transaction:
        if isinstance(operation, Append):
            for record in operation.records:
                if isinstance(record, MessageReceived | Amended | ContextCarried):
                    for message in record.messages:  # mostly one, for which sum() would take longer
                        size += len(message)
                elif isinstance(record, ModelReplied | ToolFinished | TurnFinished):
                    size += len(record.message)
        elif isinstance(operation, SetAside):
            size += sum(map(len, operation.letter.messages))
    return size
