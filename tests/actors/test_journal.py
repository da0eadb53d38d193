from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hermes.actors.journal import ActorJournal, Backlog
from hermes.domain.errors import (
    HermesError,
    SequenceConflictError,
    StoppingError,
    StorageError,
    StorageFailedError,
    StorageFullError,
    UnknownSessionError,
)
from hermes.domain.ids import Seq, SessionId
from hermes.domain.read.reader import Reader
from hermes.ports.storage import Transaction
from tests.storage.samples import append, message
from tests.support.memory_engine import MemoryEngine

A = SessionId("a")


class Engine(MemoryEngine):
    """In memory; its commits can be held up or made to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[int] = []
        self.threads: set[threading.Thread] = set()
        self.entered = threading.Event()
        self.open = threading.Event()
        self.open.set()
        self.failure: BaseException | None = None

    def commit(self, batch: Sequence[Transaction]) -> list[HermesError | None]:
        self.entered.set()
        assert self.open.wait(30)
        self.batches.append(len(batch))
        self.threads.add(threading.current_thread())
        if self.failure:
            raise self.failure
        return super().commit(batch)


@asynccontextmanager
async def journal_on(engine: Engine, backlog: Backlog | None = None) -> AsyncIterator[ActorJournal]:
    def fail(failure: StorageFailedError) -> None:
        raise AssertionError(failure)

    journal = ActorJournal(engine, on_fatal=fail, backlog=backlog)
    try:
        yield journal
    finally:
        engine.open.set()
        await journal.close()


def commit(journal: ActorJournal, *operations: Any) -> asyncio.Future[HermesError | None]:
    answer = asyncio.get_running_loop().create_future()
    journal.commit(operations, answer.set_result)
    return answer


async def held_up(engine: Engine, journal: ActorJournal) -> asyncio.Future[HermesError | None]:
    """A commit that the engine holds until it is opened."""
    engine.open.clear()
    engine.entered.clear()
    answer = commit(journal, append("first", 0))
    await asyncio.to_thread(engine.entered.wait, 30)
    return answer


def journal_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.lower().startswith("journal")]


# ---------------------------------------------------------------- group commit


async def test_a_commit_is_answered_on_the_loop() -> None:
    engine = Engine()
    async with journal_on(engine) as journal:
        answered_on = asyncio.get_running_loop().create_future()
        journal.commit((append("a", 0),), lambda _: answered_on.set_result(threading.current_thread()))
        assert await answered_on is threading.main_thread()
        assert engine.threads.isdisjoint({threading.main_thread()})
        assert len(engine.log(A)) == 1


async def test_nothing_is_answered_before_it_is_stored() -> None:
    engine = Engine()
    async with journal_on(engine) as journal:
        answer = await held_up(engine, journal)
        await asyncio.sleep(0)
        assert not answer.done()
        assert journal.waiting == 1
        engine.open.set()
        assert await answer is None
        assert journal.waiting == 0


async def test_everything_that_waits_goes_into_one_commit() -> None:
    engine = Engine()
    async with journal_on(engine) as journal:
        first = await held_up(engine, journal)
        others = [commit(journal, append("a", n)) for n in range(100)]
        assert journal.waiting == 101
        engine.open.set()
        assert await asyncio.gather(first, *others) == [None] * 101
        assert engine.batches == [1, 100]
        assert len(engine.log(A)) == 100
        assert len(engine.threads) == 1


async def test_what_one_round_of_the_loop_adds_goes_into_one_commit() -> None:
    engine = Engine()
    async with journal_on(engine) as journal:
        answers = [commit(journal, append("a", n)) for n in range(50)]
        assert set(await asyncio.gather(*answers)) == {None}
    assert engine.batches == [50]


async def test_closing_in_the_round_of_a_commit_stores_it() -> None:
    engine = Engine()
    async with journal_on(engine) as journal:
        answer = commit(journal, append("a", 0))
    assert await answer is None
    assert engine.batches == [1]


async def test_a_batch_has_a_bound_in_number() -> None:
    engine = Engine()
    async with journal_on(engine, Backlog(batch_transactions=30)) as journal:
        first = await held_up(engine, journal)
        others = [commit(journal, append("a", n)) for n in range(70)]
        engine.open.set()
        await asyncio.gather(first, *others)
        assert engine.batches == [1, 30, 30, 10]


async def test_a_batch_has_a_bound_in_bytes() -> None:
    engine = Engine()
    async with journal_on(engine, Backlog(batch_bytes=2500)) as journal:
        first = await held_up(engine, journal)
        others = [commit(journal, append("a", n, message("x" * 1000))) for n in range(7)]
        engine.open.set()
        await asyncio.gather(first, *others)
        assert engine.batches == [1, 3, 3, 1]


async def test_each_writer_hears_its_own_refusal() -> None:
    engine = Engine()
    async with journal_on(engine) as journal:
        first = await held_up(engine, journal)
        others = [commit(journal, append("a", n)) for n in (0, 5, 1)]
        engine.open.set()
        outcomes = await asyncio.gather(first, *others)
        assert [type(outcome) for outcome in outcomes] == [type(None), type(None), SequenceConflictError, type(None)]


async def test_many_writers_that_wait_for_each_commit_are_all_served() -> None:
    engine = Engine()

    async def write(name: str) -> None:
        for n in range(50):
            assert await commit(journal, append(name, n)) is None

    async with journal_on(engine) as journal:
        await asyncio.gather(*(write(f"s{n}") for n in range(20)))
        assert engine.stats().records == 1000
        assert len(engine.batches) < 500


# ---------------------------------------------------------------- failures


async def test_a_full_disk_refuses_the_whole_batch_and_the_next_may_fit() -> None:
    engine = Engine()
    async with journal_on(engine) as journal:
        engine.failure = StorageFullError("no space")
        answers = await asyncio.gather(*(commit(journal, append(f"s{n}", 0)) for n in range(5)))
        assert answers == [engine.failure] * 5
        engine.failure = None
        assert await commit(journal, append("a", 0)) is None


@pytest.mark.parametrize(
    "failure", [StorageFailedError("bad disk"), ValueError("a bug"), SystemExit(3), MemoryError()]
)
async def test_failure_is_reported_once_and_everything_is_refused(failure: BaseException) -> None:
    engine = Engine()
    told: list[StorageFailedError] = []
    journal = ActorJournal(engine, on_fatal=told.append)
    first = await held_up(engine, journal)
    others = [commit(journal, append("a", n)) for n in range(3)]
    engine.failure = failure
    engine.open.set()
    outcomes = [*await asyncio.gather(first, *others), await commit(journal, append("a", 0))]
    engine.failure = None
    outcomes.append(await commit(journal, append("a", 0)))
    assert {type(outcome) for outcome in outcomes} == {StorageFailedError}
    assert len(set(map(id, outcomes))) == 1
    assert told == outcomes[:1]
    assert engine.batches == [1]
    assert await journal.fetch(lambda reader: reader.log(A)) == []
    await journal.close()
    assert len(told) == 1


async def test_an_answer_that_raises_keeps_no_other_from_being_heard() -> None:
    engine = Engine()
    loop = asyncio.get_running_loop()
    reported: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: reported.append(context))

    def fall_over(_: HermesError | None) -> None:
        raise ZeroDivisionError

    async with journal_on(engine) as journal:
        first = await held_up(engine, journal)
        heard = []
        for n in range(6):
            journal.commit((append("a", n),), fall_over)
            heard.append(commit(journal, append("b", n)))
        engine.open.set()
        await asyncio.gather(first, *heard)
        assert journal.waiting == 0
    assert [type(context["exception"]) for context in reported] == [ZeroDivisionError] * 6


# ---------------------------------------------------------------- reading


async def test_a_read_runs_elsewhere_and_comes_back_on_the_loop() -> None:
    engine = Engine()
    async with journal_on(engine) as journal:
        await commit(journal, append("a", 0), append("a", 1))
        result = asyncio.get_running_loop().create_future()

        def query(reader: Reader) -> tuple[threading.Thread, int]:
            return threading.current_thread(), len(reader.log(A, Seq(1)))

        journal.read(query, lambda value, error: result.set_result((value, error, threading.current_thread())))
        (thread, count), error, answered_on = await result
        assert thread is not threading.main_thread()
        assert (count, error, answered_on) == (1, None, threading.main_thread())


async def test_reads_go_on_while_a_commit_is_under_way() -> None:
    engine = Engine()
    async with journal_on(engine) as journal:
        await held_up(engine, journal)
        assert await journal.fetch(lambda reader: reader.head(A)) is None


async def test_two_reads_run_concurrently() -> None:
    both = threading.Barrier(2, timeout=30)
    async with journal_on(Engine()) as journal:
        await asyncio.gather(*(journal.fetch(lambda _: both.wait()) for _ in range(2)))


async def test_a_read_that_fails_says_so() -> None:
    async with journal_on(Engine()) as journal:
        with pytest.raises(UnknownSessionError):
            await journal.fetch(lambda reader: reader.recent(1, SessionId("nobody")))
        with pytest.raises(StorageError, match="ZeroDivisionError"):
            await journal.fetch(lambda _: 1 / 0)
        assert await journal.fetch(lambda _: 7) == 7


async def test_reads_do_not_block() -> None:
    release = threading.Event()
    async with journal_on(Engine()) as journal:
        fetch = asyncio.ensure_future(journal.fetch(lambda _: release.wait(30)))
        await asyncio.sleep(0)
        fetch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetch
        release.set()


# ---------------------------------------------------------------- closing


async def test_closing_stores_what_waits_and_answers_everybody() -> None:
    engine = Engine()
    journal = ActorJournal(engine, on_fatal=lambda failure: None)
    first = await held_up(engine, journal)
    others = [commit(journal, append("a", n)) for n in range(10)]
    read = asyncio.ensure_future(journal.fetch(lambda reader: engine.open.wait(30) and 7))
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(journal.close())
    await asyncio.sleep(0)
    too_late = commit(journal, append("b", 0))
    engine.open.set()
    await closing
    assert [answer.result() for answer in (first, *others)] == [None] * 11
    assert isinstance(await too_late, StoppingError)
    assert await read == 7
    assert len(engine.log(A)) == 10
    with pytest.raises(StoppingError):
        await journal.fetch(lambda reader: reader.head(A))
    assert engine.head(SessionId("b")) is None


async def test_closing_leaves_no_thread() -> None:
    journal = ActorJournal(Engine(), on_fatal=lambda failure: None)
    await commit(journal, append("a", 0))
    await journal.fetch(lambda reader: reader.head(A))
    assert journal_threads() != []
    await journal.close()
    for thread in journal_threads():  # the writer has answered and ends in a moment
        thread.join(30)
    assert journal_threads() == []


async def test_the_epoch_is_the_engines() -> None:
    async with journal_on(Engine()) as journal:
        assert journal.epoch == 1
