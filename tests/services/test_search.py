"""Search as the daemon uses it: an index that follows the journal, and answers before it is complete."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.domain.ids import TurnId
from hermes.domain.operations import Append
from hermes.domain.records import MessageReceived
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage
from hermes.search.follower import BATCH
from hermes.services.search import _MIN_RECORDS_FOR_EARLY_START, SearchService
from tests.storage.samples import append
from tests.support.memory_engine import MemoryEngine
from tests.support.waiting import until


def saying(session: str, *texts: str) -> Append:
    def record(text: str) -> MessageReceived:
        encoded = EncodedMessage(json.dumps({"role": "user", "content": text}).encode())
        return MessageReceived(at=1.0, turn=TurnId("t"), messages=(encoded,), source=Source(platform="api"))

    return append(session, 0, *(record(text) for text in texts))


class GatedEngine(MemoryEngine):
    """Reading beyond a position waits until the gate is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.gated_from = 10**9
        self.gate = threading.Event()

    def tail(self, after: int, limit: int):  # type: ignore[no-untyped-def]
        if after >= self.gated_from:
            self.gate.wait(30)
        return super().tail(after, limit)


@pytest.fixture
def engine() -> GatedEngine:
    return GatedEngine()


@pytest.fixture
async def desk(tmp_path: Path, engine: GatedEngine) -> AsyncIterator[SearchService]:
    desk = SearchService(tmp_path / "index", engine=engine, wait_s=0.05)
    yield desk
    engine.gate.set()
    await desk.stop()


async def test_search_reports_the_progress_of_a_partial_index(engine: GatedEngine, desk: SearchService) -> None:
    engine.commit([(saying("old", "red fox", *["filler"] * (BATCH - 1)),), (saying("new", "grey fox"),)])
    engine.gated_from = BATCH
    assert desk.progress() is None
    desk._opened()
    await until(lambda: (progress := desk.progress()) is not None and progress.indexed == BATCH)
    async with asyncio.timeout(30):
        found = await desk.search("fox", limit=5)
    assert [hit.session for hit in found.hits] == ["old"]
    assert found.index is not None
    assert (found.index.indexed, found.index.total, found.index.building) == (BATCH, BATCH + 1, True)
    assert found.index.percent == 99

    engine.gate.set()
    await until(lambda: (progress := desk.progress()) is not None and not progress.building)
    found = await desk.search("fox", limit=5)
    assert {hit.session for hit in found.hits} == {"old", "new"}
    assert found.index is None


async def test_only_a_large_journal_is_indexed_before_the_first_search(
    engine: GatedEngine, desk: SearchService
) -> None:
    engine.commit([(saying("a", "fox"),)])
    desk.start()
    assert desk.progress() is None
    engine.commit([(saying("b", *["filler"] * _MIN_RECORDS_FOR_EARLY_START),)])
    desk.start()
    await until(lambda: (progress := desk.progress()) is not None and progress.indexed > 0)
