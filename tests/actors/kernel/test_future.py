from __future__ import annotations

import asyncio
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import pykka
import pytest

from hermes.actors.kernel.future import LoopFuture
from tests.actors.kernel.kernel import DEADLINE_S, hasty_threads
from tests.support.waiting import until


async def waiting(future: LoopFuture, awaiters: int) -> list[asyncio.Task[object]]:
    """Tasks that await it, all of them there already."""

    async def wait() -> object:
        return await future

    tasks = [asyncio.create_task(wait()) for _ in range(awaiters)]
    await asyncio.sleep(0)
    return tasks


async def test_any_number_may_await_it() -> None:
    future = LoopFuture()
    tasks = await waiting(future, 5)
    future.set("answer")
    assert await asyncio.gather(*tasks) == ["answer"] * 5
    assert await future == "answer"


async def test_the_loop_runs_on_while_it_is_awaited() -> None:
    future = LoopFuture()
    asyncio.get_running_loop().call_later(0.01, future.set, "answer")
    assert await asyncio.wait_for(future, DEADLINE_S) == "answer"


async def test_an_exception_is_raised_to_each_who_awaits_it() -> None:
    future = LoopFuture()
    tasks = await waiting(future, 3)
    future.set_exception((ValueError, ValueError("bad"), None))
    for task in tasks:
        with pytest.raises(ValueError, match="bad"):
            await task


def test_the_exception_being_handled_is_taken_when_none_is_given() -> None:
    future = LoopFuture()
    try:
        int("bad")
    except ValueError:
        future.set_exception()
    with pytest.raises(ValueError, match="bad"):
        future.get()


def test_an_exception_can_be_raised_again_without_its_traceback_growing() -> None:
    future = LoopFuture()
    future.set_exception((ValueError, ValueError("bad"), None))
    lengths = set()
    for _ in range(3):
        with pytest.raises(ValueError, match="bad") as caught:
            future.get()
        lengths.add(len(caught.traceback))
    assert len(lengths) == 1


async def test_one_who_is_cancelled_does_not_disturb_the_others() -> None:
    future = LoopFuture()
    first, second = await waiting(future, 2)
    first.cancel()
    await asyncio.sleep(0)
    future.set("answer")
    assert await second == "answer"
    assert first.cancelled()


async def test_one_cancelled_in_the_moment_of_the_answer_does_no_harm() -> None:
    future = LoopFuture()
    first, second = await waiting(future, 2)
    first.cancel()
    future.set("answer")
    assert await second == "answer"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_those_who_gave_up_are_forgotten() -> None:
    future = LoopFuture()
    for _ in range(100):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(future, 0)
        with pytest.raises(pykka.Timeout):
            await asyncio.to_thread(future.get, timeout=0)
    assert not future._watchers


async def test_waiting_on_the_loop_s_own_thread_is_refused() -> None:
    future = LoopFuture()
    with pytest.raises(RuntimeError, match="await the answer instead"):
        future.get(timeout=1)
    future.set("answer")
    assert future.get() == "answer"


async def test_another_thread_waits_for_it() -> None:
    future = LoopFuture()
    thread = asyncio.create_task(asyncio.to_thread(future.get, timeout=DEADLINE_S))
    await until(lambda: future._watchers)
    future.set("answer")
    assert await thread == "answer"


async def test_another_thread_settles_it() -> None:
    future = LoopFuture()
    tasks = await waiting(future, 3)
    await asyncio.to_thread(future.set, "answer")
    assert await asyncio.gather(*tasks) == ["answer"] * 3


async def test_it_can_be_awaited_on_two_loops_concurrently() -> None:
    future = LoopFuture()

    async def elsewhere() -> object:
        return await asyncio.wait_for(future, DEADLINE_S)

    other = asyncio.create_task(asyncio.to_thread(lambda: asyncio.run(elsewhere())))
    await until(lambda: future._watchers)
    (here,) = await waiting(future, 1)
    future.set("answer")
    assert await here == "answer"
    assert await other == "answer"


def test_settling_it_for_one_whose_loop_is_closed_does_no_harm() -> None:
    future = LoopFuture()
    loop = asyncio.new_event_loop()

    async def wait() -> object:
        return await future

    task = loop.create_task(wait())
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    future.set("answer")
    assert future.get() == "answer"
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # it was left behind on purpose


def test_it_is_settled_once() -> None:
    future = LoopFuture()
    future.set("first")
    with pytest.raises(queue.Full):
        future.set("second")
    with pytest.raises(queue.Full):
        future.set_exception((ValueError, ValueError("third"), None))
    assert not future.settle("fourth")
    assert future.get() == "first"


def test_what_comes_after_it_was_abandoned_is_dropped() -> None:
    future = LoopFuture()
    future.abandon(pykka.ActorDeadError("gone"))
    future.set("too late")
    future.set_exception((ValueError, ValueError("too late"), None))
    with pytest.raises(pykka.ActorDeadError, match="gone"):
        future.get()


def test_abandoning_it_after_the_answer_changes_nothing() -> None:
    future = LoopFuture()
    future.set("answer")
    future.abandon(pykka.ActorDeadError("gone"))
    assert future.get() == "answer"
    with pytest.raises(queue.Full):
        future.set("second")


def test_late_watcher_is_called_immediately() -> None:
    future = LoopFuture()
    seen: list[LoopFuture] = []
    future.watch(seen.append)
    future.set("answer")
    future.watch(seen.append)
    assert seen == [future, future]


def test_of_many_who_settle_at_once_exactly_one_wins_and_everyone_sees_the_same() -> None:
    with hasty_threads(), ThreadPoolExecutor(6) as pool:
        for _ in range(500):
            future = LoopFuture()
            together = threading.Barrier(6)
            settled = [pool.submit(settle, future, together, number) for number in range(3)]
            seen = [pool.submit(wait, future, together).result for _ in range(3)]
            (winner,) = [number for number, won in enumerate(settled) if won.result(DEADLINE_S)]
            assert [result(DEADLINE_S) for result in seen] == [winner] * 3


def settle(future: LoopFuture, together: threading.Barrier, number: int) -> bool:
    together.wait(DEADLINE_S)
    return future.settle(number)


def wait(future: LoopFuture, together: threading.Barrier) -> object:
    together.wait(DEADLINE_S)
    return future.get(timeout=DEADLINE_S)


def test_pykka_s_combinators_work_for_get() -> None:
    one, two = LoopFuture(), LoopFuture()
    doubled = one.map(lambda number: 2 * number)
    joined = one.join(two)
    odd = two.filter(lambda number: number % 2 == 1)
    total = two.reduce(lambda left, right: left + right, 0)
    one.set(21)
    two.set([1, 2, 3])
    assert doubled.get() == 42
    assert joined.get() == [21, [1, 2, 3]]
    assert odd.get() == [1, 3]
    assert total.get() == 6


async def test_a_combined_future_is_awaited_once_its_source_has_an_answer() -> None:
    source = LoopFuture()
    doubled = source.map(lambda number: 2 * number)
    with pytest.raises(RuntimeError, match="await the answer instead"):
        await doubled
    source.set(21)
    assert await doubled == 42


def test_a_settled_future_takes_no_hook_and_a_hooked_one_no_answer() -> None:
    settled, hooked = LoopFuture(), LoopFuture()
    settled.set(1)
    hooked.set_get_hook(lambda _timeout: 2)
    with pytest.raises(queue.Full):
        settled.set_get_hook(lambda _timeout: 2)
    with pytest.raises(queue.Full):
        hooked.set(1)
    assert (settled.get(), hooked.get()) == (1, 2)
