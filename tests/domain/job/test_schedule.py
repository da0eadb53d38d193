"""Schedules: their formats, and their occurrences around changes of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest

from hermes.domain.errors import BadInputError
from hermes.domain.job.schedule import (
    Schedule,
    ScheduleKind,
    count,
    last_until,
    next_after,
    parse_schedule,
)
from hermes.system.cron_times import CronsimTimes

TIMES = CronsimTimes()
BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
NOW = datetime(2026, 11, 19, 12, 0, tzinfo=UTC).timestamp()


def parse(text: str, *, now: float = NOW, zone: tzinfo = UTC) -> Schedule:
    return parse_schedule(text, now=now, zone=zone, times=TIMES)


def local(text: str, zone: tzinfo = BERLIN) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def following(text: str, start: str, many: int, zone: tzinfo = BERLIN) -> list[str]:
    """Return the next occurrences after a local time, as local times with their offset."""
    schedule = parse(text, now=local(start, zone), zone=zone)
    found, at = [], local(start, zone)
    for _ in range(many):
        after = next_after(schedule, at, zone, TIMES)
        assert after is not None
        assert after > at
        at = after
        found.append(f"{datetime.fromtimestamp(at, zone):%m-%d %H:%M%z}")
    return found


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5s", 5), ("30m", 1800), ("2h", 7200), ("1d", 86_400), ("90 minutes", 5400), ("1.5h", 5400)],
)
def test_length_of_time_is_one_occurrence(text: str, seconds: float) -> None:
    schedule = parse(text)
    assert (schedule.kind, schedule.at) == (ScheduleKind.ONCE, NOW + seconds)
    assert next_after(schedule, NOW, UTC, TIMES) == NOW + seconds
    assert next_after(schedule, NOW + seconds, UTC, TIMES) is None
    assert last_until(schedule, NOW, UTC, TIMES) is None


@pytest.mark.parametrize(("text", "seconds"), [("every 30m", 1800), ("every 2 hours", 7200), ("Every day", 86_400)])
def test_interval_counts_from_its_creation(text: str, seconds: float) -> None:
    schedule = parse(text)
    assert (schedule.kind, schedule.every_s) == (ScheduleKind.EVERY, seconds)
    assert next_after(schedule, NOW, UTC, TIMES) == NOW + seconds
    assert next_after(schedule, NOW + seconds, UTC, TIMES) == NOW + 2 * seconds
    assert next_after(schedule, NOW - 1e6, UTC, TIMES) == NOW + seconds
    assert last_until(schedule, NOW + 2.5 * seconds, UTC, TIMES) == NOW + 2 * seconds
    assert last_until(schedule, NOW + 0.5 * seconds, UTC, TIMES) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2027-01-31T09:00", "2027-01-31T09:00:00+01:00"),
        ("2027-01-31 09:00", "2027-01-31T09:00:00+01:00"),
        ("2027-01-31T09:00Z", "2027-01-31T10:00:00+01:00"),
        ("2027-07-01", "2027-07-01T00:00:00+02:00"),
        ("2027-03-28T02:30", "2027-03-28T03:30:00+02:00"),  # the clock skips it
        ("2027-10-31T02:30", "2027-10-31T02:30:00+02:00"),  # it comes twice: the first one
    ],
)
def test_iso_time_is_in_the_zone_of_the_job(text: str, expected: str) -> None:
    at = parse(text, zone=BERLIN).at
    assert datetime.fromtimestamp(at, BERLIN).isoformat() == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "often", "every", "every 5s", "every 0m", "61 * * * *", "* * * *", "0 0 31 2 *", "2020-01-01"),
        *(
            "0s",
            "9999999d",
            "2099-01-01",
            "every 99999999d",
            "1 2 3 4 5 6",
            "@reboot",
            "every 1e9h",
            "-5m",
            "0 0 * * 9",
        ),
    ],
)
def test_other_texts_are_refused_with_the_formats(text: str) -> None:
    with pytest.raises(BadInputError) as refused:
        parse(text)
    assert refused.value.code == "bad_schedule"
    assert "every 2h" in str(refused.value)


def test_fixed_time_comes_once_a_day_around_changes_of_the_clock() -> None:
    spring = following("30 2 * * *", "2027-03-26T12:00", 4)
    assert spring == ["03-27 02:30+0100", "03-28 03:00+0200", "03-29 02:30+0200", "03-30 02:30+0200"]
    autumn = following("30 2 * * *", "2027-10-29T12:00", 4)
    assert autumn == ["10-30 02:30+0200", "10-31 02:30+0200", "11-01 02:30+0100", "11-02 02:30+0100"]
    assert following("0 8 * * 1-5", "2027-03-26T09:00", 2, NEW_YORK) == ["03-29 08:00-0400", "03-30 08:00-0400"]


def test_steps_follow_real_time_around_changes_of_the_clock() -> None:
    found = following("*/30 * * * *", "2027-10-31T01:30", 6)
    assert found == [
        *("10-31 02:00+0200", "10-31 02:30+0200", "10-31 02:00+0100", "10-31 02:30+0100"),
        *("10-31 03:00+0100", "10-31 03:30+0100"),
    ]
    assert following("0 * * * *", "2027-03-28T00:30", 3) == [
        "03-28 01:00+0100",
        "03-28 03:00+0200",
        "03-28 04:00+0200",
    ]


@pytest.mark.parametrize("expression", ["30 2 * * *", "*/20 * * * *", "0 */6 * * *", "15 3 1 * *", "0 0 29 2 *"])
@pytest.mark.parametrize("zone", [BERLIN, NEW_YORK, ZoneInfo("Australia/Lord_Howe"), UTC], ids=str)
def test_the_last_occurrence_fits_the_next_one(expression: str, zone: tzinfo) -> None:
    schedule = parse(expression, zone=zone)
    for day in ("2027-03-14", "2027-03-28", "2027-04-04", "2027-10-03", "2027-10-31", "2027-11-07"):
        for hour in (0, 1, 2, 3, 4):
            at = local(f"{day}T{hour:02}:10", zone)
            last = last_until(schedule, at, zone, TIMES)
            assert last is not None
            assert last <= at
            after = next_after(schedule, last, zone, TIMES)
            assert after is not None
            assert after > at


def test_occurrences_are_counted_up_to_a_limit() -> None:
    schedule = parse("every 1m")
    assert count(schedule, NOW + 60, NOW + 60, UTC, TIMES) == 0
    assert count(schedule, NOW + 60, NOW + 601, UTC, TIMES) == 10
    assert count(schedule, NOW + 60, NOW + 1e9, UTC, TIMES) == 1000
