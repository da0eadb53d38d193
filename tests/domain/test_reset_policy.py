"""A due reset happens at its time, unless a turn runs or something works; and every answer has its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from math import inf
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.domain.ids import SessionId
from hermes.domain.process.process_record import ProcessView
from hermes.domain.process.staleness import StalenessSettings
from hermes.domain.reset_policy import (
    CHECK_AGAIN_S,
    Blocked,
    Decision,
    Keep,
    Later,
    OnStale,
    PolicyBook,
    ResetDue,
    ResetMode,
    ResetPolicy,
    SessionFacts,
    clock_was_set,
    evaluate,
    next_boundary,
)
from tests.domain import local_days

BERLIN = ZoneInfo("Europe/Berlin")
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
NOW = datetime(2026, 5, 18, 12, tzinfo=BERLIN).timestamp()
SETTINGS = StalenessSettings()
IDLE = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=120)
DAILY = ResetPolicy(mode=ResetMode.DAILY, at_hour=6)
BOTH = ResetPolicy(mode=ResetMode.BOTH, idle_minutes=120, at_hour=6)
FACTS = SessionFacts(active_at=NOW, busy=False, has_messages=True)


def build(now: float, **changes: object) -> ProcessView:
    process = ProcessView(
        id="build",
        session=SessionId("s1"),
        command="make all",
        pid=77,
        started_at=now - HOUR,
        heartbeat_at=now - 3,
        active_at=now - 20,
    )
    return replace(process, **changes)  # type: ignore[arg-type]


def server(now: float, port: int) -> ProcessView:
    return build(
        now, id=f"server {port}", command=f"http.server {port}", active_at=now - 3 * HOUR, pid=port, ports=(port,)
    )


def judge(
    policy: ResetPolicy, facts: SessionFacts, now: float, processes: Sequence[ProcessView] = (), zone: str = ""
) -> Decision:
    return evaluate(policy, facts, processes, settings=SETTINGS, zone=ZoneInfo(zone) if zone else BERLIN, now=now)


def at(zone: str, *when: int, fold: int = 0) -> float:
    year, month, day, hour, minute = (*when, 0, 0)[:5]
    return datetime(year, month, day, hour, minute, tzinfo=ZoneInfo(zone), fold=fold).timestamp()


# Idle


def test_an_idle_session_is_kept_until_its_time_and_reset_then() -> None:
    assert judge(IDLE, FACTS, NOW) == Keep(next_check=NOW + 2 * HOUR, reason="idle for 2 h")
    assert isinstance(judge(IDLE, FACTS, NOW + 2 * HOUR - 1), Keep)
    assert judge(IDLE, FACTS, NOW + 2 * HOUR) == ResetDue(reason="idle for 2 h", stale=())


def test_late_reset_states_the_idle_time() -> None:
    assert judge(IDLE, FACTS, NOW + 36.5 * HOUR) == ResetDue(reason="idle for 1 d 12 h", stale=())


def test_idle_mode_knows_no_daily_hour() -> None:
    patient = replace(IDLE, idle_minutes=3 * 1440)
    assert isinstance(judge(patient, FACTS, NOW + 2 * DAY), Keep)


# Daily


def test_daily_reset_happens_at_its_hour_without_newer_messages() -> None:
    six = at("Europe/Berlin", 2026, 5, 19, 6)
    assert judge(DAILY, FACTS, NOW) == Keep(next_check=six, reason="the daily reset at 6:00")
    assert isinstance(judge(DAILY, FACTS, six - 1), Keep)
    assert judge(DAILY, FACTS, six) == ResetDue(reason="the daily reset at 6:00", stale=())


def test_a_message_at_the_very_boundary_belongs_to_the_new_day() -> None:
    six = at("Europe/Berlin", 2026, 5, 19, 6)
    decision = judge(DAILY, replace(FACTS, active_at=six), six)
    assert decision == Keep(next_check=at("Europe/Berlin", 2026, 5, 20, 6), reason="the daily reset at 6:00")


def test_the_daily_hour_is_that_of_the_users_zone() -> None:
    decision = judge(DAILY, FACTS, NOW, zone="America/New_York")
    assert decision == Keep(next_check=at("America/New_York", 2026, 5, 19, 6), reason="the daily reset at 6:00")


def test_both_modes_together_reset_at_whichever_comes_first() -> None:
    assert judge(BOTH, FACTS, NOW) == Keep(next_check=NOW + 2 * HOUR, reason="idle for 2 h")
    late = replace(FACTS, active_at=at("Europe/Berlin", 2026, 5, 19, 5))
    assert judge(BOTH, late, late.active_at) == Keep(
        next_check=at("Europe/Berlin", 2026, 5, 19, 6), reason="the daily reset at 6:00"
    )


# What is never reset


def test_without_a_mode_nothing_is_ever_reset() -> None:
    assert judge(ResetPolicy(), FACTS, NOW + 1000 * DAY) == Keep(next_check=inf, reason="resets are off")


def test_session_without_new_messages_is_not_reset_again() -> None:
    empty = replace(FACTS, has_messages=False)
    assert judge(BOTH, empty, NOW + 30 * DAY) == Keep(next_check=inf, reason="no person has written since it began")


def test_a_running_turn_is_never_cut_and_the_reset_comes_after_it() -> None:
    later = NOW + 3 * HOUR
    decision = judge(IDLE, replace(FACTS, busy=True), later, [build(later)])
    assert decision == Later(next_check=later + CHECK_AGAIN_S, reason="idle for 3 h, after the turn that runs")
    assert isinstance(judge(IDLE, FACTS, later), ResetDue)


def test_a_turn_that_runs_before_anything_is_due_changes_nothing() -> None:
    assert judge(IDLE, replace(FACTS, busy=True), NOW) == judge(IDLE, FACTS, NOW)


# Processes


def test_a_process_that_works_blocks_a_due_reset_and_is_named() -> None:
    later = NOW + 3 * HOUR
    working = build(later)
    decision = judge(IDLE, FACTS, later, [server(later, 8765), working])
    assert decision == Blocked(
        by=(working,),
        next_check=later + CHECK_AGAIN_S,
        reason="idle for 3 h, but work goes on in make all (pid 77): it did something 20 s ago",
    )


def test_two_forgotten_servers_hold_up_neither_the_idle_nor_the_daily_reset() -> None:
    for due in (NOW + 2 * HOUR, at("Europe/Berlin", 2026, 5, 19, 6)):
        servers = server(due, 8765), server(due, 8766)
        decision = judge(BOTH, FACTS, due, servers)
        assert isinstance(decision, ResetDue)
        assert decision.stale == servers


def test_processes_that_have_ended_are_neither_waited_for_nor_reported() -> None:
    later = NOW + 3 * HOUR
    ended = build(later, ended_at=later - 1, exit_code=0)
    assert judge(IDLE, FACTS, later, [ended]) == ResetDue(reason="idle for 3 h", stale=())


def test_work_that_goes_on_before_anything_is_due_changes_nothing() -> None:
    assert judge(IDLE, FACTS, NOW, [build(NOW)]) == judge(IDLE, FACTS, NOW)


# A clock that is set


@pytest.mark.parametrize("policy", [IDLE, DAILY, BOTH])
def test_a_last_message_far_in_the_future_does_not_put_a_reset_off_for_ever(policy: ResetPolicy) -> None:
    decision = judge(policy, replace(FACTS, active_at=NOW + 3650 * DAY), NOW)
    assert isinstance(decision, ResetDue)
    assert "the clock was set back" in decision.reason


def test_a_clock_that_was_a_little_ahead_does_not_end_a_conversation() -> None:
    ahead = replace(FACTS, active_at=NOW + HOUR)
    assert judge(IDLE, ahead, NOW) == Keep(next_check=NOW + 3 * HOUR, reason="idle for 2 h")
    assert isinstance(judge(DAILY, ahead, NOW), Keep)


def test_a_clock_that_was_set_or_a_machine_that_slept_is_noticed() -> None:
    assert not clock_was_set(20.0, 20.3)
    assert not clock_was_set(12.0, 20.0)
    assert clock_was_set(HOUR, 20.0)
    assert clock_was_set(-5.0, 20.0)


# Which policy


def test_the_platforms_policy_goes_before_the_chat_types_and_that_before_the_default() -> None:
    book = PolicyBook(default=BOTH, by_platform={"telegram": IDLE}, by_type={"group": DAILY})
    assert book.for_session("telegram", "group") == IDLE
    assert book.for_session("slack", "group") == DAILY
    assert book.for_session("slack", "dm") == BOTH


def test_by_default_nothing_is_reset_and_stale_processes_are_reported() -> None:
    policy = PolicyBook().for_session("telegram", "dm")
    assert (policy.mode, policy.on_stale) == (ResetMode.NONE, OnStale.REPORT)


def test_notices_go_where_they_are_wanted() -> None:
    assert IDLE.notifies("telegram")
    assert not IDLE.notifies("api")
    assert not IDLE.notifies("webhook")
    assert not replace(IDLE, notify=False).notifies("telegram")


# Days


@pytest.mark.parametrize(
    ("zone", "at_hour", "day", "boundary"),
    [
        pytest.param("Europe/Berlin", 2, (2026, 3, 29), (2026, 3, 29, 3), id="a skipped hour"),
        pytest.param("Antarctica/Troll", 2, (2026, 3, 29), (2026, 3, 29, 3), id="the second of two skipped hours"),
        pytest.param("Australia/Lord_Howe", 2, (2026, 10, 4), (2026, 10, 4, 2, 30), id="a skipped half hour"),
        pytest.param("America/Nuuk", 23, (2026, 3, 28), (2026, 3, 29, 0), id="the skipped last hour of a day"),
        pytest.param("America/Sao_Paulo", 0, (2018, 11, 4), (2018, 11, 4, 1), id="a skipped midnight"),
        pytest.param("America/Sao_Paulo", 23, (2018, 2, 17), (2018, 2, 17, 23), id="a last hour that comes twice"),
        pytest.param("Asia/Beirut", 0, (2026, 3, 29), (2026, 3, 29, 1), id="the skipped first hour of a day"),
        pytest.param("Europe/Berlin", 2, (2026, 10, 25), (2026, 10, 25, 2), id="an hour that comes twice"),
        pytest.param("America/St_Johns", 0, (2010, 11, 7), (2010, 11, 7, 0), id="a midnight that comes twice"),
        pytest.param("America/New_York", 4, (2026, 11, 1), (2026, 11, 1, 4), id="after a longer night"),
    ],
)
def test_each_local_day_has_its_boundary(
    zone: str, at_hour: int, day: tuple[int, int, int], boundary: tuple[int, ...]
) -> None:
    expected = at(zone, *boundary)
    assert next_boundary(at_hour, ZoneInfo(zone), expected - 0.5) == expected
    assert next_boundary(at_hour, ZoneInfo(zone), expected) > expected + 20 * HOUR
    assert expected in local_days.boundaries(zone, date(*day), at_hour)


def test_an_hour_that_comes_twice_resets_once() -> None:
    first, second = (at("Europe/Berlin", 2026, 10, 25, 2, fold=fold) for fold in (0, 1))
    assert second == first + HOUR
    policy = replace(DAILY, at_hour=2)
    between = replace(FACTS, active_at=first + 30 * MINUTE)
    assert isinstance(judge(policy, replace(FACTS, active_at=first - 1), first), ResetDue)
    assert judge(policy, between, second) == Keep(
        next_check=at("Europe/Berlin", 2026, 10, 26, 2), reason="the daily reset at 2:00"
    )


def test_a_day_that_did_not_exist_had_no_boundary() -> None:
    thursday, saturday = at("Pacific/Apia", 2011, 12, 29, 4), at("Pacific/Apia", 2011, 12, 31, 4)
    assert saturday - thursday == DAY
    assert next_boundary(4, ZoneInfo("Pacific/Apia"), thursday) == saturday


@settings(deadline=None)  # the first to look at a zone walks through its days
@given(
    place=st.sampled_from(local_days.ZONES_AND_DAYS),
    at_hour=st.integers(0, 23),
    around_s=st.floats(min_value=-4 * DAY, max_value=4 * DAY),
)
def test_boundaries_are_those_of_somebody_who_watches_the_clock(
    place: tuple[str, date], at_hour: int, around_s: float
) -> None:
    zone, day = place
    now = datetime.combine(day, time(), UTC).timestamp() + around_s
    assert next_boundary(at_hour, ZoneInfo(zone), now) == local_days.following(zone, day, at_hour, now)


@pytest.mark.parametrize(("zone", "day"), local_days.ZONES_AND_DAYS)
@pytest.mark.parametrize("at_hour", [0, 2, 4, 23])
def test_boundaries_follow_each_other_about_a_day_apart(zone: str, day: date, at_hour: int) -> None:
    now = datetime.combine(day - timedelta(days=5), time(), UTC).timestamp()
    found = [now]
    while len(found) < 12:
        found.append(next_boundary(at_hour, ZoneInfo(zone), found[-1]))
    assert all(21 * HOUR < after - before < 27 * HOUR for before, after in pairwise(found[1:]))
