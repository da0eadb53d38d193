"""The daily boundaries of a zone, found by walking through its days minute by minute: slow, and plainly right."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

EITHER_SIDE = timedelta(days=30)
MINUTE = timedelta(minutes=1)
ZONES_AND_DAYS = [  # days on which the clocks change, and some on which they do not
    ("UTC", date(2026, 5, 18)),
    ("Asia/Kathmandu", date(2026, 5, 18)),
    ("Europe/Berlin", date(2026, 3, 29)),
    ("Europe/Berlin", date(2026, 10, 25)),
    ("America/New_York", date(2026, 3, 8)),
    ("America/New_York", date(2026, 11, 1)),
    ("America/Sao_Paulo", date(2018, 11, 4)),  # at midnight
    ("America/Sao_Paulo", date(2018, 2, 18)),
    ("America/Havana", date(2026, 11, 1)),
    ("Africa/Cairo", date(2026, 4, 24)),
    ("Australia/Lord_Howe", date(2026, 4, 5)),  # by half an hour
    ("Australia/Lord_Howe", date(2026, 10, 4)),
    ("America/Nuuk", date(2026, 3, 28)),
    ("America/Nuuk", date(2026, 10, 24)),
    ("Antarctica/Troll", date(2026, 3, 29)),  # by two hours
    ("America/St_Johns", date(2010, 11, 7)),
    ("Pacific/Apia", date(2011, 12, 30)),  # a day that did not exist
]


@cache
def walk(zone: str, around: date) -> tuple[tuple[float, datetime], ...]:
    """The first minute of each stretch without a jump, and each full hour: instants and what the clocks show."""
    middle = datetime.combine(around, time(12), UTC)
    minutes = range(int((middle - EITHER_SIDE).timestamp()), int((middle + EITHER_SIDE).timestamp()), 60)
    shown = [(float(at), datetime.fromtimestamp(at, ZoneInfo(zone)).replace(tzinfo=None)) for at in minutes]
    jumps = {after[0] for before, after in pairwise(shown) if after[1] - before[1] != MINUTE}
    return tuple(each for each in shown if each[0] in jumps or each[1].minute == 0)


@cache
def boundaries(zone: str, around: date, at_hour: int) -> tuple[float, ...]:
    """One for each day that exists: the first time its clocks show the hour, or anything later."""
    shown = walk(zone, around)
    days = sorted({local.date() for _, local in shown})[1:-1]  # those at the edges are not whole
    return tuple(next(at for at, local in shown if local >= datetime.combine(day, time(at_hour))) for day in days)


def latest(zone: str, around: date, at_hour: int, now: float) -> float:
    known = boundaries(zone, around, at_hour)
    assert known[0] <= now < known[-1], "outside of what was walked"
    return known[bisect_right(known, now) - 1]


def following(zone: str, around: date, at_hour: int, now: float) -> float:
    known = boundaries(zone, around, at_hour)
    assert known[0] <= now < known[-1], "outside of what was walked"
    return known[bisect_right(known, now)]
