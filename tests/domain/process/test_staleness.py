"""A process blocks a reset while it works, not while it merely exists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.domain.ids import SessionId
from hermes.domain.process.process_record import ProcessView
from hermes.domain.process.staleness import CLOCK_SLACK_S, StalenessSettings, blocking, explain, lasting

NOW = 1_800_000_000.0
SETTINGS = StalenessSettings()
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
BUILD = ProcessView(
    id="p1",
    session=SessionId("s1"),
    command="make all",
    pid=77,
    started_at=NOW - 3 * HOUR,
    heartbeat_at=NOW - 4,
    active_at=NOW - 2 * MINUTE,
    cpu_s=754.2,
    output_bytes=3_210_000,
)
SERVER = replace(BUILD, id="p2", command="python3 -m http.server 8765", active_at=NOW - 2 * HOUR, ports=(8765,))


def test_a_process_that_works_blocks_and_says_why() -> None:
    assert blocking(BUILD, SETTINGS, NOW) == "it did something 2 min ago"


def test_a_server_that_only_listens_does_not_block() -> None:
    assert blocking(SERVER, SETTINGS, NOW) == ""


def test_process_without_heartbeats_does_not_block() -> None:
    assert blocking(replace(BUILD, heartbeat_at=NOW - 30), SETTINGS, NOW) == ""
    assert blocking(replace(BUILD, heartbeat_at=NOW - 29), SETTINGS, NOW)


def test_a_process_blocks_until_it_has_done_nothing_for_as_long_as_configured() -> None:
    assert blocking(replace(BUILD, active_at=NOW - 1799), SETTINGS, NOW)
    assert blocking(replace(BUILD, active_at=NOW - 1800), SETTINGS, NOW) == ""


def test_a_process_that_was_just_found_again_blocks_until_it_is_known_whether_it_works() -> None:
    found = replace(SERVER, known=False)
    assert blocking(found, SETTINGS, NOW) == "it was found again just now, and whether it works is not known yet"
    assert blocking(replace(found, heartbeat_at=NOW - 30), SETTINGS, NOW) == ""
    assert blocking(replace(found, started_at=NOW - DAY), SETTINGS, NOW) == ""
    assert blocking(replace(found, active_at=NOW - MINUTE), SETTINGS, NOW) == "it did something 1 min ago"


def test_an_end_blocks_while_it_is_still_to_be_told_and_no_longer_than_a_heartbeat_is_fresh() -> None:
    ended = replace(BUILD, ended_at=NOW - 5, exit_code=0, untold=True)
    assert blocking(ended, SETTINGS, NOW) == "it ended 5 s ago, and the conversation is not notified yet"
    assert blocking(replace(ended, untold=False), SETTINGS, NOW) == ""
    assert blocking(replace(ended, ended_at=NOW - 30), SETTINGS, NOW) == ""
    assert blocking(replace(ended, ended_at=NOW + HOUR), SETTINGS, NOW) == ""


def test_a_process_that_works_for_ever_stops_blocking_at_its_maximum_age() -> None:
    assert blocking(replace(BUILD, started_at=NOW - DAY + 1), SETTINGS, NOW)
    assert blocking(replace(BUILD, started_at=NOW - DAY), SETTINGS, NOW) == ""


def test_a_process_that_has_ended_does_not_block_however_recent_its_work() -> None:
    ended = replace(BUILD, active_at=NOW, heartbeat_at=NOW, ended_at=NOW, exit_code=0)
    assert blocking(ended, SETTINGS, NOW) == ""


def test_a_limit_of_zero_means_that_nothing_blocks() -> None:
    working = replace(BUILD, heartbeat_at=NOW, active_at=NOW, started_at=NOW)
    for name in ("heartbeat_fresh_s", "stale_after_s", "max_age_s"):
        assert blocking(working, replace(SETTINGS, **{name: 0.0}), NOW) == ""


@pytest.mark.parametrize(
    "dated",
    [
        lambda at: replace(BUILD, started_at=at),
        lambda at: replace(BUILD, heartbeat_at=at),
        lambda at: replace(BUILD, active_at=at),
    ],
    ids=["start", "heartbeat", "activity"],
)
def test_a_time_a_little_ahead_counts_as_now_and_one_further_ahead_as_long_ago(
    dated: Callable[[float], ProcessView],
) -> None:
    assert blocking(dated(NOW + CLOCK_SLACK_S), SETTINGS, NOW)
    ahead = dated(NOW + CLOCK_SLACK_S + 1)
    assert blocking(ahead, SETTINGS, NOW) == ""
    assert "the clock was set back" in explain(ahead, SETTINGS, NOW)


def test_a_working_process_is_explained_with_what_ends_its_block() -> None:
    assert explain(BUILD, SETTINGS, NOW) == (
        "make all (pid 77) was started 3 h ago, last did something 2 min ago (12 min 34 s of CPU and 3.2 MB of "
        "output in all). A reset would wait for it: it did something 2 min ago. It would until it has done nothing "
        "for 30 min or is 1 d old."
    )


def test_a_forgotten_server_is_explained_with_its_port() -> None:
    assert explain(SERVER, SETTINGS, NOW) == (
        "python3 -m http.server 8765 (pid 77) was started 3 h ago, last did something 2 h ago (12 min 34 s of CPU "
        "and 3.2 MB of output in all), listens on port 8765. A reset would not wait for it: it did nothing for 2 h "
        "(the limit is 30 min)."
    )


def test_several_ports_are_all_named() -> None:
    assert "listens on ports 80, 443" in explain(replace(SERVER, ports=(80, 443)), SETTINGS, NOW)


def test_silence_and_age_are_explained() -> None:
    silent = replace(BUILD, heartbeat_at=NOW - 5 * MINUTE)
    assert "nothing was heard of it for 5 min (the limit is 30 s)" in explain(silent, SETTINGS, NOW)
    old = replace(BUILD, started_at=NOW - 30 * HOUR)
    assert "it has been running for 1 d 6 h (the limit is 1 d)" in explain(old, SETTINGS, NOW)


def test_the_end_of_a_process_is_explained_with_its_exit_code_if_that_is_known() -> None:
    ended = replace(BUILD, cpu_s=0.4, output_bytes=12, ended_at=NOW - 90, exit_code=2)
    assert explain(ended, SETTINGS, NOW) == (
        "make all (pid 77) ended 1 min 30 s ago with exit code 2, after 0.4 s of CPU and 12 bytes of output."
    )
    left = replace(ended, exit_code=0, reason="exited", detail="what it left running was ended: sleep")
    assert "with exit code 0 (what it left running was ended: sleep), after" in explain(left, SETTINGS, NOW)
    assert "an unknown exit code" in explain(replace(ended, exit_code=None), SETTINGS, NOW)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0 s"),
        (0.9, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (61, "1 min 1 s"),
        (7200, "2 h"),
        (9000, "2 h 30 min"),
        (7201, "2 h"),
        (129600, "1 d 12 h"),
        (86460, "1 d"),
    ],
)
def test_lengths_of_time_have_their_two_largest_units(seconds: float, words: str) -> None:
    assert lasting(seconds) == words


times = st.floats(min_value=NOW - 10 * DAY, max_value=NOW + 10 * DAY)
limits = st.floats(min_value=0, max_value=2 * DAY)


@given(
    process=st.builds(
        replace,
        st.just(BUILD),
        started_at=times,
        heartbeat_at=times,
        active_at=times,
        ended_at=st.none() | times,
        exit_code=st.none() | st.integers(0, 255),
        known=st.booleans(),
        untold=st.booleans(),
    ),
    settings=st.builds(StalenessSettings, heartbeat_fresh_s=limits, stale_after_s=limits, max_age_s=limits),
)
def test_the_explanation_always_agrees_with_the_judgement(process: ProcessView, settings: StalenessSettings) -> None:
    why = blocking(process, settings, NOW)
    words = explain(process, settings, NOW)
    assert ("A reset would wait for it" in words) == bool(why)
    assert ("A reset would not wait for it" in words) == (not why and process.ended_at is None)
    assert why in words


@given(
    process=st.builds(replace, st.just(BUILD), started_at=times, heartbeat_at=times, active_at=times),
    settings=st.builds(StalenessSettings, heartbeat_fresh_s=limits, stale_after_s=limits, max_age_s=limits),
)
def test_without_news_every_process_stops_blocking_for_good(
    process: ProcessView, settings: StalenessSettings
) -> None:
    last = max(process.started_at, process.heartbeat_at, process.active_at)
    quiet_from = last + min(settings.heartbeat_fresh_s, settings.stale_after_s, settings.max_age_s)
    for later_s in (1.0, HOUR, 100 * DAY):
        assert blocking(process, settings, quiet_from + later_s) == ""
