from __future__ import annotations

import asyncio

from hermes.agent.models.slots import Slots


async def test_slots_can_be_resized_while_some_are_taken() -> None:
    slots = Slots(2)
    done = asyncio.Event()

    async def work() -> None:
        await slots.take()
        try:
            await done.wait()
        finally:
            slots.give_back()

    tasks = [asyncio.create_task(work()) for _ in range(6)]
    for most, taken in ((2, 2), (4, 4), (1, 4)):
        slots.resize(most)
        for _ in range(5):
            await asyncio.sleep(0)
        assert slots.taken == taken
    tasks[-1].cancel()
    done.set()
    await asyncio.wait(tasks)
    assert slots.taken == 0


async def test_one_who_leaves_when_it_was_its_turn_hands_it_on() -> None:
    slots = Slots(1)
    first_may_go, entered = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        await slots.take()
        try:
            await first_may_go.wait()
        finally:
            slots.give_back()

    async def enter() -> None:
        await slots.take()
        try:
            entered.set()
        finally:
            slots.give_back()

    first = asyncio.create_task(hold())
    await asyncio.sleep(0)
    leaving = asyncio.create_task(enter())
    next_one = asyncio.create_task(enter())
    await asyncio.sleep(0)
    first_may_go.set()
    await first  # it is the second one's turn now
    leaving.cancel()
    async with asyncio.timeout(30):
        await entered.wait()
        await asyncio.wait({leaving, next_one})
