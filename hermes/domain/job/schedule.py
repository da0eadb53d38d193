"""Schedule of a job: once, at a fixed interval, or by a cron expression. Pure.

All times are seconds since the epoch. A cron expression and a time without an offset are in the job's time zone. The
arithmetic of cron expressions is an argument (`CronTimes`), since a library does it.
"""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from enum import StrEnum
from math import floor
from typing import Final, Protocol

from hermes.domain.errors import BadInputError
from hermes.domain.values import dataclass

MIN_EVERY_S: Final = 10.0
MAX_S: Final = 10 * 366 * 86_400.0  # of an interval, and until a single time
MAX_COUNTED: Final = 1000  # occurrences that are counted one by one
FORMATS: Final = "30m (once), every 2h, five cron fields such as 0 8 * * 1-5, or an ISO time such as 2027-01-31T09:00"

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_SPAN: Final = re.compile(
    r"(\d{1,7}(?:\.\d{1,3})?)\s*"
    r"(s|sec|secs|seconds?|m|min|mins|minutes?|h|hr|hrs|hours?|d|days?|w|weeks?)",
    re.IGNORECASE,
)
_EVERY: Final = re.compile(r"every\s+(.+)", re.IGNORECASE)
_WORDS: Final = {"minute": "1m", "hour": "1h", "day": "1d", "week": "1w"}
_NAMED: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


class ScheduleKind(StrEnum):
    ONCE = "once"
    EVERY = "every"
    CRON = "cron"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    kind: ScheduleKind
    text: str  # as it was written
    at: float = 0.0  # the single time; of an interval, the time that it counts from
    every_s: float = 0.0
    expression: str = ""  # five cron fields


class CronTimes(Protocol):
    """Arithmetic of cron expressions."""

    def problem(self, expression: str) -> str:
        """Return why the expression cannot be used; empty if it can."""

    def after(self, expression: str, time: float, zone: tzinfo) -> float | None:
        """Return the first match after a time. None: there is none within years."""

    def until(self, expression: str, time: float, zone: tzinfo) -> float | None:
        """Return the last match at or before a time."""


def parse_schedule(text: str, *, now: float, zone: tzinfo, times: CronTimes) -> Schedule:
    """Return the schedule that a text means. Raises BadInputError."""
    said = " ".join(text.split())
    if found := _EVERY.fullmatch(said):
        return _interval(said, found[1], now)
    if span := _span(said):
        return Schedule(kind=ScheduleKind.ONCE, text=said, at=now + span)
    if said.startswith("@") or len(said.split(" ")) == 5:
        return _cron(said, now, zone, times)
    return _single(said, now, zone)


def _interval(said: str, length: str, now: float) -> Schedule:
    every_s = _span(_WORDS.get(length.lower(), length))
    if not MIN_EVERY_S <= every_s <= MAX_S:
        raise _bad(f"{said!r} is not an interval of at least {MIN_EVERY_S:.0f} seconds")
    return Schedule(kind=ScheduleKind.EVERY, text=said, at=now, every_s=every_s)


def _span(text: str) -> float:
    """Return the seconds of a length of time; 0 if the text is none."""
    found = _SPAN.fullmatch(text)
    seconds = float(found[1]) * _UNITS[found[2][0].lower()] if found else 0.0
    return seconds if seconds <= MAX_S else 0.0


def _cron(said: str, now: float, zone: tzinfo, times: CronTimes) -> Schedule:
    expression = _NAMED.get(said.lower(), said).upper()
    if problem := times.problem(expression):
        raise _bad(f"{said!r} is not a cron expression: {problem}")
    if times.after(expression, now, zone) is None:
        raise _bad(f"{said!r} never comes")
    return Schedule(kind=ScheduleKind.CRON, text=said, at=now, expression=expression)


def _single(said: str, now: float, zone: tzinfo) -> Schedule:
    try:
        time = datetime.fromisoformat(said)
        at = (time if time.tzinfo else time.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError):
        raise _bad(f"{said[:80]!r} is not a schedule") from None
    if at <= now:
        raise _bad(f"{said} is in the past")
    if at > now + MAX_S:
        raise _bad(f"{said} is more than ten years away")
    return Schedule(kind=ScheduleKind.ONCE, text=said, at=at)


def _bad(problem: str) -> BadInputError:
    return BadInputError(f"{problem}; use {FORMATS}", param="schedule", code="bad_schedule")


# ---------------------------------------------------------------- occurrences


def next_after(schedule: Schedule, time: float, zone: tzinfo, times: CronTimes) -> float | None:
    """Return the first occurrence after a time; None: there is none."""
    match schedule.kind:
        case ScheduleKind.ONCE:
            return schedule.at if schedule.at > time else None
        case ScheduleKind.EVERY:
            return schedule.at + max(floor((time - schedule.at) / schedule.every_s) + 1, 1) * schedule.every_s
        case ScheduleKind.CRON:
            return times.after(schedule.expression, time, zone)


def last_until(schedule: Schedule, time: float, zone: tzinfo, times: CronTimes) -> float | None:
    """Return the last occurrence at or before a time; None: there is none."""
    match schedule.kind:
        case ScheduleKind.ONCE:
            return schedule.at if schedule.at <= time else None
        case ScheduleKind.EVERY:
            count = floor((time - schedule.at) / schedule.every_s)
            return schedule.at + count * schedule.every_s if count >= 1 else None
        case ScheduleKind.CRON:
            return times.until(schedule.expression, time, zone)


def count(schedule: Schedule, first: float, before: float, zone: tzinfo, times: CronTimes) -> int:
    """Return how many occurrences are in [first, before), counting no further than MAX_COUNTED."""
    found, at = 0, first
    while at < before and found < MAX_COUNTED:
        found += 1
        following = next_after(schedule, at, zone, times)
        if following is None:
            break
        at = following
    return found


def period_s(schedule: Schedule, at: float, zone: tzinfo, times: CronTimes) -> float:
    """Return the time between an occurrence and the next one; 0: there is no next one."""
    following = next_after(schedule, at, zone, times)
    return 0.0 if following is None else following - at
