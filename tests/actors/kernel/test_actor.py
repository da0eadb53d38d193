"""What LoopActor promises beyond pykka: deaths that stay alone, owners, timers, deferred answers, fairness."""

from __future__ import annotations

import asyncio
import gc
import re
import threading
import time
import tracemalloc
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeAlias

import pykka
import pytest
from blockbuster import BlockBuster
from loguru import logger

from hermes.actors.kernel.actor import ActorDied, LoopActor, live_actors
from hermes.actors.kernel.future import LoopFuture
from tests.actors.kernel.kernel import DEADLINE_S, hasty_threads
from tests.support.waiting import until

KILLERS = (ValueError, asyncio.CancelledError, SystemExit, KeyboardInterrupt, GeneratorExit, MemoryError)

Ref: TypeAlias = pykka.ActorRef[Any]
Script: TypeAlias = Callable[["Probe"], object]  # a message that says what its handler does


class Probe(LoopActor):
    """Does what each message says, and writes down the others."""

    kind = "probe"

    def __init__(self, *, on_start: Script | None = None, on_stop: Script | None = None) -> None:
        super().__init__()
        self.diary: list[object] = []
        self.on_failure_does: Script | None = None
        self._on_start, self._on_stop = on_start, on_stop

    def on_start(self) -> None:
        if self._on_start is not None:
            self._on_start(self)

    def on_stop(self) -> None:
        if self._on_stop is not None:
            self._on_stop(self)

    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.diary.append(exception_value)
        if self.on_failure_does is not None:
            self.on_failure_does(self)

    def on_receive(self, message: object) -> object:
        if callable(message):
            return message(self)
        self.diary.append(message)
        return message


class Owner(LoopActor):
    def __init__(self) -> None:
        super().__init__()
        self.diary: list[object] = []

    def on_receive(self, message: object) -> list[object]:
        if message != "diary":
            self.diary.append(message)
        return self.diary


def failing(error: BaseException) -> Script:
    def handle(_: Probe) -> object:
        raise error

    return handle


def fail(_: Probe) -> object:
    raise ValueError("bad")


def compute(seconds: float) -> None:
    done_at = time.monotonic() + seconds
    while time.monotonic() < done_at:
        pass


def itself(probe: Probe) -> Probe:
    return probe


@pytest.fixture(autouse=True)
async def no_actor_left() -> AsyncIterator[None]:
    yield
    for actor in live_actors():
        await actor.actor_ref.stop(block=False)
    assert live_actors() == []


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logger.disable("hermes.actors")  # these tests kill thousands, and each death is logged
    yield
    logger.enable("hermes.actors")


@pytest.fixture
def log(quiet: None, nothing_blocks_the_loop: BlockBuster) -> Iterator[list[str]]:
    # The logger makes paths absolute when it formats a traceback.
    nothing_blocks_the_loop.functions["os.path.abspath"].can_block_in("loguru/_better_exceptions.py", "_is_file_mine")
    logger.enable("hermes.actors")
    lines: list[str] = []
    sink = logger.add(lambda line: lines.append(str(line)), level="DEBUG", format="{level} {message}", diagnose=False)
    yield lines
    logger.remove(sink)


async def answer(future: pykka.Future[Any]) -> Any:
    return await asyncio.wait_for(future, DEADLINE_S)


async def ask(ref: Ref, message: object) -> Any:
    return await answer(ref.ask(message, block=False))


async def stop(*refs: Ref) -> None:
    for stopped in [ref.stop(block=False) for ref in refs]:
        await answer(stopped)


async def deaths(owner: Ref, number: int) -> list[ActorDied]:
    diary: list[ActorDied] = await ask(owner, "diary")
    await until(lambda: len(diary) >= number)
    return diary


# ---------------------------------------------------------------- a death stays alone


@pytest.mark.parametrize("killer", KILLERS)
@pytest.mark.parametrize("asked", [False, True], ids=["told", "asked"])
async def test_whatever_a_handler_raises_ends_its_actor_alone(killer: type[BaseException], asked: bool) -> None:
    refs = [Probe.start() for _ in range(1000)]
    victim, error = refs.pop(500), killer("boom")
    if asked:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - which one is looked at below
            await ask(victim, failing(error))
        assert error in (caught.value, caught.value.__cause__)
    else:
        victim.tell(failing(error))
    assert await asyncio.gather(*(ask(ref, number) for number, ref in enumerate(refs))) == list(range(999))
    assert not victim.is_alive()
    assert len(live_actors()) == 999


@pytest.mark.parametrize("killer", KILLERS)
async def test_failed_start_ends_one_actor_with_a_reason(killer: type[BaseException]) -> None:
    owner, other, error = Owner.start(), Probe.start(), killer("no")
    seen: list[object] = []

    def begin(probe: Probe) -> None:
        probe.on_failure_does = lambda probe: seen.extend(probe.diary)
        raise error

    ref = Probe.start(on_start=begin, owner=owner)
    ref.tell("never handled")
    waiting = ref.ask("never answered", block=False)
    with pytest.raises(pykka.ActorDeadError):
        await answer(waiting)
    assert seen == [error]
    (died,) = await deaths(owner, 1)
    assert (died.ref, died.cause, died.message, died.unhandled) == (ref, error, None, ("never handled",))
    assert await ask(other, "alive") == "alive"


async def test_who_asks_gets_an_exception_as_it_is() -> None:
    error = ValueError("bad")
    with pytest.raises(ValueError, match="bad") as caught:
        await ask(Probe.start(), failing(error))
    assert caught.value is error


@pytest.mark.parametrize("killer", [asyncio.CancelledError, SystemExit, KeyboardInterrupt, GeneratorExit])
async def test_who_asks_is_not_ended_by_what_ended_the_actor(killer: type[BaseException]) -> None:
    """Raised in the asker as they are, these would cancel its task or stop the whole loop."""
    with pytest.raises(pykka.ActorDeadError, match=f"probe p was ended by {killer.__name__}") as caught:
        await ask(Probe.start(name="p"), failing(killer()))
    assert isinstance(caught.value.__cause__, killer)


async def test_ask_to_a_dead_actor_fails_and_the_owner_is_notified() -> None:
    owner = Owner.start()
    ref = Probe.start(owner=owner)
    with pytest.raises(ValueError, match="bad"):
        await ask(ref, fail)
    assert not ref.is_alive()
    assert len(await ask(owner, "diary")) == 1


@pytest.mark.parametrize("killer", KILLERS)
async def test_a_failing_on_stop_is_logged_and_spreads_no_further(
    killer: type[BaseException], log: list[str]
) -> None:
    owner, other = Owner.start(), Probe.start()
    ref = Probe.start(on_stop=failing(killer("oops")), owner=owner, name="clumsy")
    assert await answer(ref.stop(block=False)) is True
    (died,) = await deaths(owner, 1)
    assert died.cause is None
    assert any("probe clumsy failed on on_stop" in line and killer.__name__ in line for line in log)
    assert await ask(other, "alive") == "alive"


@pytest.mark.parametrize("killer", KILLERS)
async def test_a_failing_on_failure_is_logged_beside_its_cause(killer: type[BaseException], log: list[str]) -> None:
    owner = Owner.start()
    ref = Probe.start(owner=owner, name="clumsy")
    probe: Probe = await ask(ref, itself)
    probe.on_failure_does = failing(killer("worse"))
    ref.tell(fail)
    (died,) = await deaths(owner, 1)
    assert isinstance(died.cause, ValueError)
    assert any("probe clumsy failed on function" in line and "ValueError: bad" in line for line in log)
    assert any("probe clumsy failed on on_failure" in line and "worse" in line for line in log)


async def test_an_unknown_message_is_logged_by_its_type_alone(log: list[str]) -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Whisper:
        text: str

    ref = LoopActor.start(name="deaf")
    assert await ask(ref, Whisper(text="secret")) is None
    assert any("actor deaf does not understand Whisper" in line for line in log)
    assert not any("secret" in line for line in log)


# ---------------------------------------------------------------- the control lane


async def test_a_stop_overtakes_waiting_mail() -> None:
    owner = Owner.start()
    ref = Probe.start(owner=owner)
    probe: Probe = await ask(ref, itself)
    for number in range(10_000):
        ref.tell(number)
    assert await answer(ref.stop(block=False)) is True
    assert probe.diary == []
    (died,) = await deaths(owner, 1)
    assert died.unhandled == tuple(range(10_000))


async def test_a_stop_overtakes_mail_in_the_middle_of_a_batch() -> None:
    ref = Probe.start()
    probe: Probe = await ask(ref, itself)
    ref.tell(1)
    ref.tell(lambda probe: probe.stop())
    ref.tell(2)
    await until(lambda: not ref.is_alive())  # its turn may end in the middle
    assert probe.diary == [1]


async def test_a_death_notice_overtakes_waiting_mail() -> None:
    owner = Owner.start()
    child = Probe.start(owner=owner)
    await ask(child, "up")
    child.stop(block=False)
    for number in range(100):
        owner.tell(number)
    diary = await ask(owner, "diary")
    assert isinstance(diary[0], ActorDied)
    assert diary[1:] == list(range(100))


async def test_asks_queued_behind_a_failure_fail_with_actor_dead() -> None:
    ref = Probe.start(name="p")
    ref.tell(fail)
    waiting = [ref.ask(number, block=False) for number in range(100)]
    for future in waiting:
        with pytest.raises(pykka.ActorDeadError, match="probe p has ended"):
            await answer(future)


async def test_no_ask_that_races_with_an_end_is_left_hanging() -> None:
    """Four threads ask each of 2,000 actors around the moment when it ends, one way or the other."""
    refs = [Probe.start() for _ in range(2000)]
    outcomes: list[str] = []

    def ask_all() -> None:
        for number, ref in enumerate(refs):
            try:
                got = ref.ask(number, timeout=DEADLINE_S)
            except pykka.ActorDeadError:
                outcomes.append("dead")
            else:
                assert got == number
                outcomes.append("answered")

    with hasty_threads(), ThreadPoolExecutor(4) as pool:
        threads = [asyncio.get_running_loop().run_in_executor(pool, ask_all) for _ in range(4)]
        for number, ref in enumerate(refs):
            if number % 2:
                ref.stop(block=False)
            else:
                ref.tell(fail)
            for _ in range(number % 4):
                await asyncio.sleep(0)
        await asyncio.gather(*threads)
    assert len(outcomes) == 8000
    assert not any(ref.is_alive() for ref in refs)


async def test_what_is_told_while_the_actor_ends_is_handled_refused_or_handed_to_the_owner_once() -> None:
    owner = Owner.start()
    refs = [Probe.start(owner=owner) for _ in range(500)]
    probes: list[Probe] = await asyncio.gather(*(ask(ref, itself) for ref in refs))
    refused: list[object] = []

    def tell_all(sender: int) -> None:
        for number, ref in enumerate(refs):
            try:
                ref.tell((sender, number))
            except pykka.ActorDeadError:
                refused.append((sender, number))

    with hasty_threads(), ThreadPoolExecutor(3) as pool:
        threads = [asyncio.get_running_loop().run_in_executor(pool, tell_all, sender) for sender in range(3)]
        for ref in refs:
            await answer(ref.stop(block=False))
        await asyncio.gather(*threads)
    handled = [message for probe in probes for message in probe.diary]
    handed = [message for died in await deaths(owner, 500) for message in died.unhandled]
    assert sorted([*refused, *handled, *handed]) == [(s, n) for s in range(3) for n in range(500)]  # type: ignore[type-var]


# ---------------------------------------------------------------- owners


async def test_the_owner_is_told_what_killed_its_child_and_what_was_still_waiting() -> None:
    owner, error = Owner.start(), ValueError("bad")
    ref = Probe.start(owner=owner, name="child")
    killer = failing(error)
    for message in ("handled", killer, "first", "second"):
        ref.tell(message)
    asked = ref.ask("asked", block=False)
    ref.tell("third")
    (died,) = await deaths(owner, 1)
    assert died == ActorDied(
        ref=ref, name="child", cause=error, message=killer, unhandled=("first", "second", "third")
    )
    with pytest.raises(pykka.ActorDeadError):
        await answer(asked)


async def test_owner_is_notified_of_a_clean_stop() -> None:
    owner = Owner.start()
    ref = Probe.start(owner=owner, name="child")
    await stop(ref)
    assert await deaths(owner, 1) == [ActorDied(ref=ref, name="child", cause=None, message=None, unhandled=())]


async def test_a_child_that_outlives_its_owner_ends_quietly() -> None:
    owner = Owner.start()
    child = Probe.start(owner=owner)
    await stop(owner)
    assert await ask(child, "alive") == "alive"
    child.tell(fail)
    with pytest.raises(pykka.ActorDeadError):
        await ask(child, "gone")


async def test_an_owner_that_dies_hands_the_death_notices_it_had_not_read_to_its_own_owner() -> None:
    grandparent = Owner.start()
    parent = Probe.start(owner=grandparent, name="parent")
    notice = ActorDied(ref=parent, name="child", cause=None, message=None, unhandled=())

    def die_unread(probe: Probe) -> None:
        probe.actor_ref.tell(notice)
        raise ValueError("bad")

    parent.tell(die_unread)
    (died,) = await deaths(grandparent, 1)
    assert (died.name, died.unhandled) == ("parent", (notice,))


# ---------------------------------------------------------------- names


async def test_names_reach_the_actor_without_its_init_knowing() -> None:
    named = await ask(Probe.start(name="telegram:17"), itself)
    unnamed, other = await ask(Probe.start(), itself), await ask(Probe.start(), itself)
    assert named.name == "telegram:17"
    assert re.fullmatch(r"probe-\d+", unnamed.name)
    assert unnamed.name != other.name
    assert str(named) == "probe telegram:17"


def test_an_actor_needs_a_running_loop() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        Probe.start()


async def test_live_actors_are_listed_in_the_order_they_were_started() -> None:
    refs = [Probe.start(name=str(number)) for number in range(5)]
    assert [actor.name for actor in live_actors()] == ["0", "1", "2", "3", "4"]
    await stop(refs[2])
    assert [actor.name for actor in live_actors()] == ["0", "1", "3", "4"]
    assert pykka.ActorRegistry.get_all() == []


async def test_an_actor_whose_init_fails_is_not_started() -> None:
    class Broken(LoopActor):
        def __init__(self) -> None:
            super().__init__()
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Broken.start()
    assert live_actors() == []


# ---------------------------------------------------------------- deferred answers


async def test_a_deferred_answer_comes_when_the_actor_gives_it() -> None:
    ref = Probe.start()
    kept: list[LoopFuture] = []
    future = ref.ask(lambda probe: kept.append(probe.defer_reply()), block=False)
    assert await ask(ref, "in between") == "in between"
    assert not kept[0].done()
    kept[0].set("at last")
    assert await answer(future) == "at last"


async def test_a_deferred_answer_can_come_from_another_thread() -> None:
    def work_elsewhere(probe: Probe) -> None:
        thread = threading.Thread(target=probe.defer_reply().set, args=("done",))
        thread.start()
        thread.join(30)

    assert await ask(Probe.start(), work_elsewhere) == "done"


async def test_only_an_asked_message_can_be_deferred_and_once() -> None:
    owner = Owner.start()
    told, twice = Probe.start(owner=owner), Probe.start(owner=owner)
    told.tell(lambda probe: probe.defer_reply())
    twice.ask(lambda probe: (probe.defer_reply(), probe.defer_reply()), block=False)
    assert [str(died.cause) for died in await deaths(owner, 2) if "no caller to answer" in str(died.cause)]
    probe: Probe = await ask(Probe.start(), itself)
    with pytest.raises(RuntimeError, match="no caller to answer"):
        probe.defer_reply()


@pytest.mark.parametrize("end", [Probe.stop, fail])
async def test_answers_that_are_open_when_the_actor_ends_are_given_up(end: Script) -> None:
    ref = Probe.start(name="p")
    kept: list[LoopFuture] = []
    future = ref.ask(lambda probe: kept.append(probe.defer_reply()), block=False)
    ref.tell(end)
    with pytest.raises(pykka.ActorDeadError, match="probe p has ended"):
        await answer(future)
    kept[0].set("too late, and nobody minds")


async def test_a_handler_that_fails_after_it_deferred_answers_with_its_exception() -> None:
    with pytest.raises(ValueError, match="bad"):
        await ask(Probe.start(), lambda probe: (probe.defer_reply(), fail(probe)))


# ---------------------------------------------------------------- timers


async def test_a_timer_comes_as_a_message() -> None:
    ref = Probe.start()
    probe: Probe = await ask(ref, itself)
    rung: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    began = time.monotonic()
    await ask(ref, lambda probe: probe.tell_later(0.02, lambda _: rung.set_result("rung")) and None)
    assert await asyncio.wait_for(rung, DEADLINE_S) == "rung"
    assert time.monotonic() - began >= 0.02
    assert probe.statistics().handled == 3


async def test_a_timer_can_be_cancelled() -> None:
    ref = Probe.start()
    probe: Probe = await ask(ref, itself)
    await ask(ref, lambda probe: probe.tell_later(0, "never").cancel())
    await ask(ref, lambda probe: probe.tell_later(0, "rung") and None)
    await until(lambda: probe.diary)
    assert probe.diary == ["rung"]


@pytest.mark.parametrize("end", [Probe.stop, fail])
async def test_timers_are_cancelled_when_the_actor_ends(end: Script) -> None:
    ref = Probe.start()
    handles = [await ask(ref, lambda probe: probe.tell_later(3600, "never")) for _ in range(20)]
    ref.tell(end)
    await until(lambda: not ref.is_alive())
    assert all(handle.cancelled() for handle in handles)


async def test_timers_that_ring_when_the_actor_has_just_ended_are_nothing() -> None:
    ref, loop, rung = Probe.start(), asyncio.get_running_loop(), asyncio.Event()
    complaints: list[object] = []
    loop.set_exception_handler(lambda _loop, context: complaints.append(context))

    def set_many_and_stop(probe: Probe) -> None:
        for _ in range(50):
            probe.tell_later(0, "never")
        probe.stop()
        loop.call_later(0, rung.set)

    await ask(ref, set_many_and_stop)
    assert not ref.is_alive()
    await asyncio.wait_for(rung.wait(), DEADLINE_S)
    loop.set_exception_handler(None)
    assert complaints == []


async def test_timers_that_rang_or_were_cancelled_do_not_pile_up() -> None:
    ref = Probe.start()

    def set_many(probe: Probe) -> int:
        probe.tell_later(3600, "kept")
        for _ in range(1000):
            probe.tell_later(3600, "never").cancel()
        return len(probe._LoopActor__timers._handles)  # type: ignore[attr-defined]

    assert await ask(ref, set_many) < 20


# ---------------------------------------------------------------- fairness


async def test_a_flooded_actor_does_not_starve_timers_and_others() -> None:
    flooded, other = Probe.start(), Probe.start()
    probe: Probe = await ask(flooded, itself)

    def again(probe: Probe) -> None:
        probe.actor_ref.tell(again)
        probe.actor_ref.tell("more")

    flooded.tell(again)
    for number in range(20_000):
        flooded.tell(number)
    await asyncio.wait_for(asyncio.sleep(0.001), DEADLINE_S)
    assert await ask(other, "alive") == "alive"
    left = len(probe.actor_inbox)
    assert left > 0
    assert await answer(flooded.stop(block=False)) is True


async def test_a_burst_to_many_actors_leaves_the_loop_its_turns() -> None:
    refs = [Probe.start() for _ in range(200)]
    await asyncio.gather(*(ask(ref, "up") for ref in refs))
    handled = 0

    def work(_: Probe) -> None:
        nonlocal handled
        handled += 1
        compute(0.001)

    for ref in refs:
        ref.tell(work)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert 0 < handled < 100


# ---------------------------------------------------------------- memory


async def test_a_running_actor_lives_without_anyone_holding_it() -> None:
    alive = weakref.ref(await ask(Probe.start(), itself))
    gc.collect()
    assert alive() is not None


@pytest.mark.parametrize("end", [Probe.stop, fail])
async def test_an_ended_actor_is_garbage_even_if_its_ref_is_kept(end: Script) -> None:
    ref = Probe.start()
    await ask(ref, lambda probe: probe.tell_later(3600, "never") and None)
    ref.ask(lambda probe: probe.defer_reply() and None, block=False)
    gone = weakref.ref(await ask(ref, itself))
    ref.tell(end)
    await until(lambda: not ref.is_alive())
    gc.collect()
    assert gone() is None


async def test_an_idle_actor_is_small() -> None:
    class Bare(LoopActor):
        pass

    await stop(Bare.start())  # what is made once is there
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        refs = [Bare.start(name=f"session-{number}") for number in range(2000)]
        await asyncio.gather(*(ask(ref, 0) for ref in refs))
        gc.collect()
        each = (tracemalloc.get_traced_memory()[0] - before) / len(refs)
    finally:
        tracemalloc.stop()
    assert each <= 2200


# ---------------------------------------------------------------- figures


async def test_statistics_say_how_the_actor_does() -> None:
    ref = Probe.start(name="p")
    probe: Probe = await ask(ref, itself)
    await ask(ref, lambda _: compute(0.01))
    view = probe.statistics()
    assert (view.kind, view.name, view.state, view.mailbox) == ("probe", "p", "running", 0)
    assert view.handled == 2
    assert 0.01 <= view.slowest_s <= view.age_s
    assert (view.oldest_s, view.last_error) == (0.0, "")


async def test_statistics_show_what_waits() -> None:
    ref = Probe.start()
    probe: Probe = await ask(ref, itself)
    ref.tell(1)
    ref.tell(2)
    waiting = probe.statistics()
    stopped = ref.stop(block=False)
    assert (waiting.state, waiting.mailbox) == ("running", 2)
    assert 0 < waiting.oldest_s < DEADLINE_S
    assert (probe.statistics().state, probe.statistics().mailbox) == ("stopping", 3)
    await answer(stopped)


async def test_statistics_keep_the_last_error() -> None:
    ref = Probe.start()
    probe: Probe = await ask(ref, itself)
    with pytest.raises(ValueError, match="bad"):
        await ask(ref, fail)
    assert probe.statistics().last_error == "ValueError: bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    text: str

    def __call__(self, _: Probe) -> None:
        compute(0.06)


async def test_a_slow_handler_is_logged_with_its_name_and_never_its_content(log: list[str]) -> None:
    await ask(Probe.start(name="p"), Compute(text="secret"))
    assert re.search(r"WARNING probe p held up the event loop for \d+ ms with Compute", "".join(log))
    assert "secret" not in "".join(log)


async def test_a_slow_start_is_not_put_down_to_the_first_message(log: list[str]) -> None:
    ref = Probe.start(on_start=Compute(text="secret"), name="p")
    await ask(ref, "quick")
    assert "with on_start" in log[0]
