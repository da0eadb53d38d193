from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from hermes.domain.errors import StoppingError, StorageError, UnknownSessionError
from hermes.domain.ids import Seq, SessionId, TurnId
from hermes.domain.records import Ended, MessageReceived, Record
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage
from hermes.search.follower import BATCH, IndexFollower, Written
from hermes.search.index import SearchIndex
from tests.support.waiting import until

A, B = SessionId("a"), SessionId("b")


def message(text: str) -> Record:
    encoded = EncodedMessage(json.dumps({"role": "user", "content": text}).encode())
    return MessageReceived(at=1.0, turn=TurnId("t"), messages=(encoded,), source=Source(platform="api"))


class ToyJournal:
    def __init__(self) -> None:
        self.written: list[Written] = []
        self.parents: dict[SessionId, SessionId] = {}
        self.erased: set[SessionId] = set()
        self.reads: list[int] = []
        self.trouble: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()

    def write(self, session: SessionId, *records: Record) -> None:
        for record in records:
            self.written.append((len(self.written) + 1, session, Seq(len(self.written)), record))

    def erase(self, session: SessionId) -> None:
        self.erased.add(session)
        self.written = [each for each in self.written if each[1] != session]

    def read_after(self, position: int, limit: int) -> Sequence[Written]:
        self.reads.append(position)
        if self.trouble:
            raise self.trouble
        found = [each for each in self.written if each[0] > position][:limit]
        self.gate.wait(30)
        return found

    def lineage_root(self, session: SessionId) -> SessionId:
        if session in self.erased:
            raise UnknownSessionError(session)
        while session in self.parents:
            session = self.parents[session]
        return session


class IndexHarness:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.journal = ToyJournal()
        self.index = SearchIndex(directory)
        self.follower = self.new_follower()

    def new_follower(self, debounce_s: float = 0.01) -> IndexFollower:
        return IndexFollower(
            self.index,
            read_after=self.journal.read_after,
            lineage_root=self.journal.lineage_root,
            debounce_s=debounce_s,
            retry_s=0.01,
        )

    async def restart(self, debounce_s: float = 0.01) -> None:
        await self.follower.stop()
        self.follower = self.new_follower(debounce_s)
        self.follower.start()

    async def sessions(self, query: str) -> list[str]:
        hits = await asyncio.to_thread(self.index.search, query)
        return sorted(hit.session for hit in hits)

    async def until_found(self, query: str) -> None:
        async with asyncio.timeout(30):
            while not await self.sessions(query):  # noqa: ASYNC110 - asked in a thread
                await asyncio.sleep(0.001)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[IndexHarness]:
    world = IndexHarness(tmp_path)
    yield world
    world.journal.gate.set()
    await world.follower.stop()
    await asyncio.to_thread(world.index.close)


async def test_what_was_written_before_the_start_is_taken_in(world: IndexHarness) -> None:
    world.journal.write(A, message("red fox"), Ended(at=2.0, reason="x"))
    world.follower.start()
    await world.follower.caught_up()
    assert await world.sessions("fox") == ["a"]
    assert await asyncio.to_thread(world.index.position) == 2


async def test_a_nudge_is_enough_for_what_is_written_later(world: IndexHarness) -> None:
    world.follower.start()
    await world.follower.caught_up()
    world.journal.write(A, message("late fox"))
    world.follower.nudge()
    await world.until_found("fox")


async def test_many_nudges_are_one_look(world: IndexHarness) -> None:
    await world.restart(debounce_s=0.05)
    await world.follower.caught_up()
    looks = len(world.journal.reads)
    for number in range(20):
        world.journal.write(A, message(f"fox {number}"))
        world.follower.nudge()
    await world.until_found("fox")
    await world.follower.caught_up()
    assert len(world.journal.reads) - looks <= 4


async def test_more_than_one_batch_is_taken_in_to_the_end(world: IndexHarness) -> None:
    world.journal.write(A, *[message(f"word{number}") for number in range(2 * BATCH + 3)])
    world.follower.start()
    await world.follower.caught_up()
    assert await world.sessions(f"word{2 * BATCH + 2}") == ["a"]


async def test_large_journal_is_taken_in_with_rests_unless_a_search_waits(world: IndexHarness) -> None:
    rests: list[float] = []

    async def noted(seconds: float) -> None:
        rests.append(seconds)
        await asyncio.sleep(0)

    world.follower._pause = noted  # type: ignore[method-assign]
    world.journal.write(A, *[message(f"word{number}") for number in range(3 * BATCH)])
    world.follower.start()
    await until(lambda: world.follower.position == 3 * BATCH and not world.follower.building)
    assert len(rests) == 1 + 3  # the debounce, and one after each batch
    rests.clear()
    world.journal.write(A, *[message(f"more{number}") for number in range(3 * BATCH)])
    await world.follower.caught_up()
    assert len(rests) == 1


async def test_without_a_nudge_new_records_are_taken_in_after_a_while(world: IndexHarness) -> None:
    follower = IndexFollower(
        world.index,
        read_after=world.journal.read_after,
        lineage_root=world.journal.lineage_root,
        debounce_s=0.01,
        follow_s=0.01,
    )
    await world.follower.stop()
    world.follower = follower
    follower.start()
    await follower.caught_up()
    world.journal.write(A, message("late fox"))
    await world.until_found("fox")


async def test_a_session_is_known_by_its_oldest_ancestor(world: IndexHarness) -> None:
    world.journal.parents[B] = A
    world.journal.write(A, message("fox one"))
    world.journal.write(B, message("fox two"))
    world.follower.start()
    await world.follower.caught_up()
    [hit] = await asyncio.to_thread(world.index.search, "fox")
    assert hit.root == A


async def test_after_a_restart_it_goes_on_where_it_was(world: IndexHarness) -> None:
    world.journal.write(A, message("one"), message("two"))
    world.follower.start()
    await world.follower.caught_up()
    await world.restart()
    world.journal.reads.clear()
    world.journal.write(B, message("three"))
    await world.follower.caught_up()
    assert min(world.journal.reads) == 1  # one look back, at the last thing it knows
    assert await world.sessions("three") == ["b"]


async def test_an_index_that_is_lost_is_filled_again(world: IndexHarness) -> None:
    world.journal.write(A, message("fox"))
    world.follower.start()
    await world.follower.caught_up()
    await asyncio.to_thread(world.index.clear)
    await world.follower.caught_up()
    assert await world.sessions("fox") == ["a"]


async def test_an_index_that_knows_more_than_the_journal_is_filled_again(world: IndexHarness) -> None:
    world.journal.write(A, message("fox"), message("bear"), message("wolf"))
    world.follower.start()
    await world.follower.caught_up()
    await world.follower.stop()
    world.journal.written = world.journal.written[:1]  # an older copy was put back
    await world.restart()
    await world.follower.caught_up()
    assert await world.sessions("fox OR wolf") == ["a"]
    assert await world.sessions("wolf") == []


async def test_a_failure_is_tried_again_until_it_works(world: IndexHarness) -> None:
    world.journal.write(A, message("fox"))
    for trouble in (StorageError("the disk"), ValueError("a mistake")):
        world.journal.trouble = trouble
        world.journal.reads.clear()
        await world.restart()
        await until(lambda: len(world.journal.reads) >= 3)
    world.journal.trouble = None
    await world.follower.caught_up()
    assert await world.sessions("fox") == ["a"]


async def test_a_session_forgotten_while_it_is_being_read_stays_forgotten(world: IndexHarness) -> None:
    world.journal.write(A, message("fox"))
    world.journal.write(B, message("bear"))
    world.journal.gate.clear()
    world.follower.start()
    await until(lambda: world.journal.reads)
    world.journal.written = [each for each in world.journal.written if each[1] != A]
    forgetting = asyncio.create_task(world.follower.forget(A))
    await asyncio.sleep(0)
    world.journal.gate.set()
    await forgetting
    await world.follower.caught_up()
    assert await world.sessions("fox OR bear") == ["b"]


async def test_records_of_a_session_that_is_erased_meanwhile_are_passed_over(world: IndexHarness) -> None:
    world.journal.write(A, message("fox"))
    world.journal.write(B, message("fox"))
    world.journal.erased.add(A)
    world.follower.start()
    await world.follower.caught_up()
    assert await world.sessions("fox") == ["b"]


async def test_a_stop_waits_for_no_pause_and_tells_who_waits(world: IndexHarness) -> None:
    world.journal.trouble = StorageError("the disk")
    await world.follower.stop()
    world.follower = IndexFollower(
        world.index,
        read_after=world.journal.read_after,
        lineage_root=world.journal.lineage_root,
        debounce_s=3600,
        retry_s=3600,
    )
    world.follower.start()
    waiting = asyncio.create_task(world.follower.caught_up())
    async with asyncio.timeout(30):
        await until(lambda: world.journal.reads)
        await world.follower.stop()
        with pytest.raises(StoppingError):
            await waiting
    with pytest.raises(StoppingError):
        await world.follower.caught_up()


async def test_cancelled_wait_affects_no_other_waiter(world: IndexHarness) -> None:
    world.journal.gate.clear()
    world.follower.start()
    leaving = asyncio.create_task(world.follower.caught_up())
    await asyncio.sleep(0)
    leaving.cancel()
    staying = asyncio.create_task(world.follower.caught_up())
    world.journal.gate.set()
    await staying
    assert leaving.cancelled()
