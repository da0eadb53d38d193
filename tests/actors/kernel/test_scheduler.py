from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hermes.actors.kernel.scheduler import SLICE_S, Dispatcher


@contextmanager
def complaints() -> Iterator[list[dict[str, Any]]]:
    """What reaches the loop's exception handler."""
    loop = asyncio.get_running_loop()
    heard: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _loop, context: heard.append(context))
    yield heard
    loop.set_exception_handler(None)


async def test_one_loop_has_one_dispatcher() -> None:
    assert Dispatcher.here() is Dispatcher.here()
    other = await asyncio.to_thread(lambda: asyncio.run(elsewhere()))
    assert other is not Dispatcher.here()


async def elsewhere() -> Dispatcher:
    return Dispatcher.here()


def test_without_a_loop_there_is_none() -> None:
    with pytest.raises(RuntimeError):
        Dispatcher.here()


async def test_busy_actors_leave_the_loop_its_turns() -> None:
    dispatcher = Dispatcher.here()
    left = 40

    def drain(now: float, until: float) -> float:
        nonlocal left
        left -= 1
        return now + SLICE_S  # as if it had taken that long

    for _ in range(left):
        dispatcher.add(drain)
    turns = 0
    while left:
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 40


async def test_who_passes_its_turn_comes_after_the_others() -> None:
    dispatcher = Dispatcher.here()
    order: list[str] = []

    def greedy(now: float, _until: float) -> float:
        order.append("greedy")
        if order.count("greedy") < 3:
            dispatcher.add(greedy)
        return now

    def modest(now: float, _until: float) -> float:
        order.append("modest")
        return now

    dispatcher.add(greedy)
    dispatcher.add(modest)
    await asyncio.sleep(0)
    assert order == ["greedy", "modest", "greedy", "greedy"]


async def test_one_that_raises_does_not_hold_up_the_others() -> None:
    dispatcher = Dispatcher.here()
    done = asyncio.Event()

    def broken(_now: float, _until: float) -> float:
        raise ValueError("a defect of the kernel")

    def sound(now: float, _until: float) -> float:
        done.set()
        return now

    with complaints() as heard:
        dispatcher.add(broken)
        dispatcher.add(sound)
        await asyncio.wait_for(done.wait(), 30)
    assert [type(context["exception"]) for context in heard] == [ValueError]


async def test_what_a_thread_leaves_is_delivered_before_what_it_schedules_next() -> None:
    dispatcher, order = Dispatcher.here(), []
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def other_thread() -> None:
        for number in range(0, 1000, 2):
            with dispatcher.lock:
                dispatcher.leave(lambda number=number: order.append(number))  # type: ignore[misc]
            loop.call_soon_threadsafe(order.append, number + 1)
        loop.call_soon_threadsafe(done.set)

    thread = threading.Thread(target=other_thread)
    thread.start()
    await asyncio.wait_for(done.wait(), 30)
    thread.join(30)
    place = {number: index for index, number in enumerate(order)}
    assert len(place) == 1000
    assert all(place[number] < place[number + 1] for number in range(0, 1000, 2))
