"""Watch of a process's output for texts."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hermes.processes.watch import Breaker, WatchNotice, WatchPatterns, admit, watch_end, watch_output

WATCH = WatchPatterns(patterns=("ready", "error:"))


def test_only_lines_with_a_pattern_cause_a_notice() -> None:
    watch, notice = watch_output(WATCH, b"one\nserver ready\ntwo\n", 0)
    assert notice == WatchNotice(lines=("server ready",))
    assert watch_output(watch, b"nothing\n", 100)[1] is None


def test_a_line_may_come_in_pieces() -> None:
    watch, notice = watch_output(WATCH, b"server rea", 0)
    assert notice is None
    assert watch_output(watch, b"dy now\n", 1)[1] == WatchNotice(lines=("server ready now",))


def test_the_last_line_may_lack_its_end() -> None:
    watch, notice = watch_output(WATCH, b"error: x", 0)
    assert notice is None
    assert watch_end(watch, 1)[1] == WatchNotice(lines=("error: x",))
    assert watch_end(WATCH, 1)[1] is None


def test_colours_do_not_hide_a_word() -> None:
    assert watch_output(WATCH, b"\x1b[32mre\x1b[1mady\x1b[0m\n", 0)[1] == WatchNotice(lines=("ready",))


def test_held_lines_come_with_the_next_notice() -> None:
    watch, _ = watch_output(WATCH, b"ready 1\n", 0)
    watch, notice = watch_output(watch, b"ready 2\nready 3\n", 14.9)
    assert notice is None
    assert watch_output(watch, b"ready 4\n", 15)[1] == WatchNotice(lines=("ready 2", "ready 3", "ready 4"))


def test_held_lines_are_reported_without_a_further_line() -> None:
    watch, _ = watch_output(WATCH, b"ready 1\n", 0)
    watch, _ = watch_output(watch, b"ready 2\n", 3)
    assert watch_output(watch, b"", 14.9)[1] is None
    assert watch_output(watch, b"", 15)[1] == WatchNotice(lines=("ready 2",))


def test_end_reports_held_lines_without_promotion() -> None:
    watch = WATCH
    for second in range(44):
        watch, _ = watch_output(watch, b"ready\n", second)
    assert watch_end(watch, 44)[1] == WatchNotice(lines=("ready",) * 13)


def test_chatty_process_is_promoted_after_three_windows() -> None:
    watch, told = WATCH, []
    for second in range(200):
        watch, notice = watch_output(watch, b"ready\n", second)
        if notice is not None:
            told.append((second, notice.promoted))
    assert told == [(0, False), (15, False), (30, False), (45, True)]
    assert watch.promoted


def test_quiet_window_resets_the_strikes() -> None:
    watch, told = WATCH, 0
    for second in (0, 5, 15, 20, 30, 45, 50, 60, 65, 80):
        watch, notice = watch_output(watch, b"ready\n", second)
        told += notice is not None
    assert not watch.promoted
    assert told == 6


def test_clock_set_back_does_not_stop_notices() -> None:
    watch, _ = watch_output(WATCH, b"ready\n", 10**9)
    assert watch_output(watch, b"ready\n", 5)[1] is not None


def test_a_notice_and_the_memory_are_bounded() -> None:
    watch, notice = watch_output(WATCH, b"ready " * 1000 + b"\n" + b"ready\n" * 1000 + b"x" * 100_000, 0)
    assert notice is not None
    assert len(notice.lines) == 20
    assert notice.suppressed == 981
    assert len(watch.unfinished) <= 8192


@given(st.binary(max_size=300).map(lambda raw: raw.replace(b"\x1b", b"")), st.lists(st.integers(0, 300), max_size=6))
def test_split_of_the_output_does_not_matter(data: bytes, cuts: list[int]) -> None:
    data += b"\nready\n"
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    watch, seen = WATCH, 0
    for start, stop in pairwise(edges):
        watch, notice = watch_output(watch, data[start:stop], 0)
        seen += len(notice.lines) + notice.suppressed if notice else 0
    whole, notice = watch_output(WATCH, data, 0)
    assert notice is not None
    held = len(watch.held) + watch.suppressed
    assert seen + held == len(notice.lines) + notice.suppressed + len(whole.held) + whole.suppressed


def test_watch_without_patterns_does_nothing() -> None:
    empty = WatchPatterns(patterns=())
    assert watch_output(empty, b"ready\n", 0) == (empty, None)


def test_breaker_admits_fifteen_in_ten_seconds_then_pauses() -> None:
    breaker, passed = Breaker(), []
    for tenth in range(500):
        breaker, may = admit(breaker, tenth / 10)
        passed += [tenth / 10] if may else []
    assert len([at for at in passed if at < 31.5]) == 15
    assert min(at for at in passed if at > 2) == 31.5
