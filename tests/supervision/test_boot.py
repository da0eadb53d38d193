from __future__ import annotations

from hermes.ports.storage import Transaction
from hermes.supervision.boot import Boot, read_boot, started, stopped, unstarted
from tests.support.memory_engine import MemoryEngine


def store(engine: MemoryEngine, transaction: Transaction) -> None:
    assert engine.commit([transaction]) == [None]


def boot(engine: MemoryEngine, now: float) -> Boot:
    found = read_boot(engine, now)
    store(engine, started(found))
    return found


def test_the_first_start_follows_nothing() -> None:
    found = boot(MemoryEngine(), 0.0)
    assert (found.first, found.stopped, found.starts) == (True, "", ())


def test_a_clean_stop_is_known_to_the_next_start_and_to_no_later_one() -> None:
    engine = MemoryEngine()
    boot(engine, 0.0)
    store(engine, stopped("shutdown: SIGTERM"))
    assert boot(engine, 1.0).stopped == "shutdown: SIGTERM"
    after_a_crash = boot(engine, 2.0)
    assert (after_a_crash.stopped, after_a_crash.first) == ("", False)


def test_more_starts_after_crashes_than_allowed_within_a_minute_are_a_loop() -> None:
    engine = MemoryEngine()
    loops = [boot(engine, now).is_loop(3) for now in (0, 5, 10, 15, 20)]
    assert loops == [False, False, False, False, True]
    assert not boot(engine, 100).is_loop(3)


def test_clean_restarts_are_no_loop_and_a_limit_of_zero_knows_none() -> None:
    engine = MemoryEngine()
    for now in range(10):
        assert not boot(engine, now).is_loop(3)
        store(engine, stopped("restart"))
    crashing = MemoryEngine()
    assert not any(boot(crashing, now).is_loop(0) for now in range(10))


def test_a_clock_that_was_set_back_makes_no_loop() -> None:
    engine = MemoryEngine()
    for now in (1000.0, 1001.0, 1002.0, 1003.0):
        boot(engine, now)
    assert not boot(engine, 5.0).is_loop(3)


def test_a_start_that_is_refused_counts_for_nothing() -> None:
    engine = MemoryEngine()
    for last in (None, "as asked"):
        for now in (1.0, 2.0, 3.0):
            refused = read_boot(engine, now)
            assert engine.commit([started(refused)]) == [None]
            assert engine.commit([unstarted(refused)]) == [None]
        found = read_boot(engine, 4.0)
        assert (found.first, found.stopped, found.starts) == (last is None, last or "", ())
        assert engine.commit([started(found), stopped("as asked")]) == [None, None]
    assert engine.commit([started(read_boot(engine, 5.0))]) == [None]  # and was killed
    refused = read_boot(engine, 6.0)
    assert engine.commit([started(refused), unstarted(refused)]) == [None, None]
    assert read_boot(engine, 7.0).starts == (7.0,)
