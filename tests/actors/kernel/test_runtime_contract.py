"""What LoopActor and pykka's ThreadingActor have in common, and the seams of pykka that LoopActor hangs on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeAlias

import pykka
import pytest
from pykka import messages
from pykka._envelope import Envelope

from hermes.actors.kernel.actor import LoopActor, live_actors
from tests.actors.kernel.kernel import DEADLINE_S
from tests.support.waiting import until

whose_context: ContextVar[str] = ContextVar("whose_context", default="nobody's")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    error: Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Keeps a thread busy until it is let go."""

    let_go: threading.Event


@dataclass(frozen=True, slots=True, kw_only=True)
class StopYourself:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class TellContext:
    pass


class Behaviour:
    """Answers with what it is asked, and writes down all that happens to it."""

    def __init__(self, diary: list[object], *, start_error: Exception | None = None) -> None:
        super().__init__()
        self._diary = diary
        self._start_error = start_error

    def on_start(self) -> None:
        self._diary.append("started")
        if self._start_error is not None:
            raise self._start_error

    def on_stop(self) -> None:
        self._diary.append("stopped")

    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._diary.append(exception_value)

    def on_receive(self, message: object) -> object:
        match message:
            case Fail():
                raise message.error
            case Hold():
                message.let_go.wait(DEADLINE_S)
            case StopYourself():
                self.stop()  # type: ignore[attr-defined]
            case TellContext():
                return whose_context.get()
            case _:
                self._diary.append(message)
        return message


class ThreadProbe(Behaviour, pykka.ThreadingActor):
    pass


class LoopProbe(Behaviour, LoopActor):
    pass


Ref: TypeAlias = pykka.ActorRef[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    start: Callable[..., Ref]
    answer: Callable[[pykka.Future[Any]], Awaitable[Any]]
    held: Callable[[Ref], Any]  # a context manager in which the actor handles nothing


async def _awaited(future: pykka.Future[Any]) -> Any:
    return await asyncio.wait_for(future, DEADLINE_S)


async def _got(future: pykka.Future[Any]) -> Any:
    return await asyncio.to_thread(future.get, timeout=DEADLINE_S)


@contextmanager
def _held_by_us(_ref: Ref) -> Iterator[None]:
    yield  # an actor of this loop does nothing as long as the test does not wait


@contextmanager
def _held_by_message(ref: Ref) -> Iterator[None]:
    let_go = threading.Event()
    ref.tell(Hold(let_go=let_go))
    yield
    let_go.set()


@pytest.fixture(params=["threading", "loop"])
async def runtime(request: pytest.FixtureRequest) -> AsyncIterator[Runtime]:
    if request.param == "threading":
        yield Runtime(start=ThreadProbe.start, answer=_got, held=_held_by_message)
        await asyncio.to_thread(pykka.ActorRegistry.stop_all)
        return
    yield Runtime(start=LoopProbe.start, answer=_awaited, held=_held_by_us)
    for actor in live_actors():
        await actor.actor_ref.stop(block=False)


@pytest.fixture
def diary() -> list[object]:
    return []


# ---------------------------------------------------------------- telling and asking


async def test_an_actor_starts_before_its_first_message(runtime: Runtime, diary: list[object]) -> None:
    ref = runtime.start(diary)
    ref.tell("first")
    assert ref.is_alive()
    assert await runtime.answer(ref.ask("second", block=False)) == "second"
    assert diary == ["started", "first", "second"]


async def test_messages_are_handled_in_the_order_they_were_sent(runtime: Runtime, diary: list[object]) -> None:
    ref = runtime.start(diary)
    for number in range(1000):
        ref.tell(number)
    await runtime.answer(ref.ask("last", block=False))
    assert diary == ["started", *range(1000), "last"]


async def test_many_threads_can_tell_and_each_one_s_order_is_kept(runtime: Runtime, diary: list[object]) -> None:
    ref = runtime.start(diary)

    def tell_many(sender: int) -> None:
        for number in range(500):
            ref.tell((sender, number))

    await asyncio.gather(*(asyncio.to_thread(tell_many, sender) for sender in range(4)))
    await runtime.answer(ref.ask("last", block=False))
    for sender in range(4):
        own = [entry[1] for entry in diary if isinstance(entry, tuple) and entry[0] == sender]
        assert own == list(range(500))


async def test_another_thread_can_ask_and_wait(runtime: Runtime, diary: list[object]) -> None:
    ref = runtime.start(diary)
    assert await asyncio.to_thread(ref.ask, "from afar", timeout=DEADLINE_S) == "from afar"


async def test_an_impatient_asker_gets_a_timeout(runtime: Runtime, diary: list[object]) -> None:
    ref = runtime.start(diary)
    with runtime.held(ref):
        answer = ref.ask("slow", block=False)
        thread = threading.Thread(target=impatient, args=(answer, diary))
        thread.start()
        thread.join(30)
    assert "timeout" in diary
    assert await runtime.answer(answer) == "slow"


def impatient(answer: pykka.Future[Any], diary: list[object]) -> None:
    try:
        answer.get(timeout=0.01)
    except pykka.Timeout:
        diary.append("timeout")


async def test_handler_does_not_see_the_context_variables_of_the_sender(
    runtime: Runtime, diary: list[object]
) -> None:
    whose_context.set("the teller's")
    ref = runtime.start(diary)
    assert await runtime.answer(ref.ask(TellContext(), block=False)) == "nobody's"


# ---------------------------------------------------------------- failing


async def test_who_asks_gets_the_exception(runtime: Runtime, diary: list[object]) -> None:
    ref = runtime.start(diary)
    with pytest.raises(ValueError, match="bad"):
        await runtime.answer(ref.ask(Fail(error=ValueError("bad")), block=False))


async def test_failure_of_a_tell_ends_the_actor(runtime: Runtime, diary: list[object]) -> None:
    ref, error = runtime.start(diary), ValueError("bad")
    ref.tell(Fail(error=error))
    await until(lambda: not ref.is_alive())
    await until(lambda: error in diary)
    assert "stopped" not in diary


async def test_an_actor_that_cannot_start_ends(runtime: Runtime, diary: list[object]) -> None:
    ref = runtime.start(diary, start_error=ValueError("no"))
    await until(lambda: not ref.is_alive())
    with pytest.raises(pykka.ActorDeadError):
        ref.tell("too late")


# ---------------------------------------------------------------- stopping


async def test_a_stop_says_true_and_then_false(runtime: Runtime, diary: list[object]) -> None:
    ref = runtime.start(diary)
    assert await runtime.answer(ref.stop(block=False)) is True
    assert not ref.is_alive()
    assert await runtime.answer(ref.stop(block=False)) is False
    assert diary == ["started", "stopped"]


async def test_concurrent_stops_both_succeed(runtime: Runtime, diary: list[object]) -> None:
    ref = runtime.start(diary)
    with runtime.held(ref):
        stops = [ref.stop(block=False), ref.stop(block=False)]
    assert [await runtime.answer(stop) for stop in stops] == [True, True]
    assert diary.count("stopped") == 1


async def test_another_thread_can_stop_it_and_wait(runtime: Runtime, diary: list[object]) -> None:
    ref = runtime.start(diary)
    assert await asyncio.to_thread(ref.stop, timeout=DEADLINE_S) is True
    assert diary == ["started", "stopped"]


async def test_an_actor_can_stop_itself(runtime: Runtime, diary: list[object]) -> None:
    ref = runtime.start(diary)
    ref.tell(StopYourself())
    await until(lambda: "stopped" in diary)
    assert not ref.is_alive()


async def test_telling_a_dead_actor_is_an_error(runtime: Runtime, diary: list[object]) -> None:
    ref = runtime.start(diary)
    await runtime.answer(ref.stop(block=False))
    with pytest.raises(pykka.ActorDeadError):
        ref.tell("too late")
    with pytest.raises(pykka.ActorDeadError):
        await asyncio.to_thread(ref.tell, "too late")


async def test_asking_a_dead_actor_is_answered_with_an_error(runtime: Runtime, diary: list[object]) -> None:
    ref = runtime.start(diary)
    await runtime.answer(ref.stop(block=False))
    answer = ref.ask("too late", block=False)
    with pytest.raises(pykka.ActorDeadError):
        await runtime.answer(answer)
    with pytest.raises(pykka.ActorDeadError):
        await asyncio.to_thread(ref.ask, "too late", timeout=DEADLINE_S)


async def test_who_asks_behind_a_stop_is_told_that_the_actor_is_dead(runtime: Runtime, diary: list[object]) -> None:
    ref = runtime.start(diary)
    with runtime.held(ref):
        ref.stop(block=False)
        answers = [ref.ask(number, block=False) for number in range(10)]
    for answer in answers:
        with pytest.raises(pykka.ActorDeadError):
            await runtime.answer(answer)


# ---------------------------------------------------------------- what we lean on


def test_pykka_s_seams_are_where_loop_actor_expects_them() -> None:
    moved = "pykka has moved a seam LoopActor is built on: read its changes before raising the pinned version"
    for seam in ("_create_actor_inbox", "_create_future", "_start_actor_loop"):
        assert callable(getattr(pykka.Actor, seam, None)), f"{moved} ({seam})"
    assert {"_create_actor_inbox", "_create_future", "_start_actor_loop"} == pykka.Actor.__abstractmethods__, moved
    assert messages._ActorStop() == (), f"{moved} (_ActorStop)"
    assert [*Envelope.__slots__] == ["message", "reply_to"], f"{moved} (Envelope)"
    assert {"actor_class", "actor_urn", "actor_inbox", "actor_stopped"} <= {*pykka.ActorRef.__annotations__}, moved
    assert {"_get_hook", "_get_hook_result"} <= {*pykka.Future.__annotations__}, f"{moved} (Future)"
