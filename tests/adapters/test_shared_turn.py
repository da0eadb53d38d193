"""Many readers of one run: it is read and encoded once, and nobody holds up the others."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from aiohttp import web

from hermes.adapters.http.event_stream import PIECE_BYTES, PIECES_A_ROUND, EventStream
from hermes.adapters.http.turnstile import Turnstile
from hermes.adapters.openai_api.runs import run_api
from hermes.adapters.openai_api.runs.run_object import event_of
from hermes.adapters.openai_api.turns.shared_turn import FreshRead, SharedTurns
from hermes.domain.ids import RUN, TurnToken
from hermes.domain.read.views import TurnRecord
from tests.adapters.conftest import ApiHarness, events
from tests.adapters.turn_script import S, T, TurnScript
from tests.support.waiting import until

READERS = 30


async def test_concurrent_reads_share_a_read_that_started_after_the_call() -> None:
    begun: list[int] = []
    gate = asyncio.Event()

    async def read() -> int:
        begun.append(len(begun))
        number = begun[-1]
        await gate.wait()
        return number

    fresh = FreshRead(read)
    first = asyncio.create_task(fresh())
    await until(lambda: begun)
    late = [asyncio.create_task(fresh()) for _ in range(5)]
    await asyncio.sleep(0)
    late[0].cancel()  # one that leaves does not take the read from the others
    gate.set()
    assert await first == 0
    assert await asyncio.gather(*late[1:]) == [1] * 4
    assert await fresh() == 2


async def test_failed_read_fails_for_its_sharers_only() -> None:
    answers: list[Any] = [ValueError("no"), 7]

    async def read() -> Any:
        await asyncio.sleep(0)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    fresh = FreshRead(read)
    with pytest.raises(ValueError, match="no"):
        await fresh()
    assert await fresh() == 7


async def test_shared_turn_is_dropped_with_its_last_reader() -> None:
    turns = SharedTurns(TurnScript().desk)
    kept = turns.of(S, T)
    assert turns.of(S, T) is kept
    kept.frames["s:0"] = b"x"
    del kept
    assert turns.of(S, T).frames == {}


async def test_many_readers_of_a_run_read_and_encode_it_about_once(
    world: ApiHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = TurnScript()
    script.desk = world.desk
    encoded: list[object] = []
    reads: list[TurnRecord] = []
    records = world.desk.records

    async def counted(*place: Any) -> Any:
        reads.append(place)  # type: ignore[arg-type]
        await asyncio.sleep(0.01)
        return await records(*place)

    def noted(told: Any, so_far: Any) -> Any:
        encoded.append(told)
        return event_of(told, so_far)

    monkeypatch.setattr(world.desk, "records", counted)
    monkeypatch.setattr(run_api, "event_of", noted)
    server = await world.api()
    client = await world.client(server)
    script.begin()
    path = f"/v1/runs/{TurnToken(session=S, turn=T).text(RUN)}/events"

    async def read() -> list[Any]:
        async with client.get(path) as response:
            return await events(response)

    readers = [asyncio.create_task(read()) for _ in range(READERS)]
    await until(lambda: len(world.hub.feeds) == READERS)
    answer = "long " * 100_000
    world.hub.publish(script.end(answer))
    stories = await asyncio.gather(*readers)
    assert all(story == stories[0] for story in stories)
    assert stories[0][-1].event == "run.completed"
    assert stories[0][-1].data["output"] == answer
    assert len(encoded) == 3, "accepted, started, completed"
    assert len(reads) < READERS


# ---------------------------------------------------------------- the stream


class Written:
    """Takes what is written; `held` makes it wait, as a reader that takes nothing."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.free = asyncio.Event()
        self.free.set()

    async def write(self, data: bytes) -> None:
        self.pieces.append(bytes(data))
        await self.free.wait()


def a_stream(turnstile: Turnstile) -> tuple[EventStream, Written]:
    stream, written = EventStream(turnstile), Written()
    assert isinstance(stream.response, web.StreamResponse)
    stream.response = written  # type: ignore[assignment]
    return stream, written


async def test_a_long_event_goes_out_in_pieces() -> None:
    stream, written = a_stream(Turnstile(PIECES_A_ROUND))
    event = bytes(range(256)) * 1_000
    await stream.send_frame(event)
    assert b"".join(written.pieces) == event
    assert max(map(len, written.pieces)) == PIECE_BYTES


async def test_after_a_cancelled_event_the_rest_of_it_comes_first() -> None:
    stream, written = a_stream(Turnstile(PIECES_A_ROUND))
    written.free.clear()
    event = b"x" * (3 * PIECE_BYTES)
    sending = asyncio.create_task(stream.send_frame(event))
    await until(lambda: written.pieces)
    sending.cancel()
    await asyncio.wait([sending])
    written.free.set()
    await stream.send({"farewell": True})
    assert b"".join(written.pieces) == event + b'data: {"farewell":true}\n\n'


async def test_the_turnstile_lets_a_few_through_in_each_round() -> None:
    turnstile = Turnstile(per_round=3)
    passed: list[int] = []

    async def enter(number: int) -> None:
        await turnstile()
        passed.append(number)

    tasks = [asyncio.create_task(enter(number)) for number in range(10)]
    counts = [0]
    while len(passed) < 10:
        await asyncio.sleep(0)
        counts.append(len(passed))
    assert passed == list(range(10))
    assert max(after - before for before, after in itertools.pairwise(counts)) <= 3
    await asyncio.gather(*tasks)


async def test_turnstile_passes_the_next_one_when_a_waiting_task_is_cancelled() -> None:
    turnstile = Turnstile(per_round=1)
    first, left, next_one = (asyncio.create_task(turnstile()) for _ in range(3))
    assert not await first
    left.cancel()
    async with asyncio.timeout(5):
        assert await next_one
    assert left.cancelled()
    assert turnstile.waiting == 0
