"""Decision when a session is reset. Pure: policy, session, processes, time zone and time are arguments.

A reset is due when no person has written for a while (idle), or when the daily hour has passed since the last message
(daily). It happens at its time, not with the next message. It never stops a running turn, and waits only for
processes that work (`staleness`). A session without messages is not reset. Only a person's message or answer
postpones it.

Each decision except a reset has the time of the next check; `inf` means not before a message. These are wall-clock
times; the clock can be set, and the machine can sleep. So the scheduler compares them with the clock a few times a
minute, for all sessions together, and uses no long timers. After `clock_was_set` the times
of processes are wrong: it waits for a heartbeat, and then checks every session. The reset is decided before a new
message counts.

If the clock was ahead, the last message is in the future. That may postpone a reset by one more period. A time
further ahead is ignored, and the reset is due.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from math import inf

from hermes.domain.access.api_key import surface_of
from hermes.domain.process.process_record import ProcessView
from hermes.domain.process.staleness import StalenessSettings, blocking, lasting
from hermes.domain.values import dataclass

CHECK_AGAIN_S = 30.0  # while a due reset waits for a turn or a process
_DAY_S = 86400.0
_STEP_S = 10.0  # less than that does no harm: no heartbeat turns stale by it
_UNKNOWN = "the last message is dated in the future, since the clock was set back"


class ResetMode(StrEnum):
    NONE = "none"
    IDLE = "idle"
    DAILY = "daily"
    BOTH = "both"


class OnStale(StrEnum):
    """Treatment of idle background processes at a reset."""

    REPORT = "report"
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetPolicy:
    mode: ResetMode = ResetMode.NONE
    idle_minutes: int = 1440
    at_hour: int = 4  # 0 to 23, in the user's time zone
    notify: bool = True
    notify_exclude_platforms: tuple[str, ...] = ("api", "webhook")
    on_stale: OnStale = OnStale.REPORT

    def notifies(self, platform: str) -> bool:
        return self.notify and surface_of(platform) not in self.notify_exclude_platforms


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyBook:
    default: ResetPolicy = ResetPolicy()
    by_platform: Mapping[str, ResetPolicy] = field(default_factory=dict)
    by_type: Mapping[str, ResetPolicy] = field(default_factory=dict)  # of chat: dm, group, thread

    def for_session(self, platform: str, chat_type: str) -> ResetPolicy:
        return self.by_platform.get(platform) or self.by_type.get(chat_type) or self.default

    def rule_for(self, platform: str, chat_type: str) -> str:
        """Return the scope of the policy: a platform before a kind of chat. Empty: all."""
        if platform in self.by_platform:
            return platform
        return chat_type if chat_type in self.by_type else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    active_at: float  # when a person last wrote, in whichever ancestor that was
    busy: bool  # a turn runs or is to be continued
    asks: bool = False  # and waits for a person's answer
    has_messages: bool  # of a person, its own or carried over by a compression


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """No reset is due. `reason` is that of the next one, or why there is none."""

    next_check: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """A reset is due and comes after the turn. Check at the turn's end, or at `next_check`."""

    next_check: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """A reset is due, and processes work. `reason` contains a duration; compare `by` to find a change."""

    by: tuple[ProcessView, ...]
    next_check: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetDue:
    reason: str
    stale: tuple[ProcessView, ...]  # still alive: to be reported or ended


Decision = Keep | Later | Blocked | ResetDue


@dataclass(frozen=True, slots=True, kw_only=True)
class _Due:
    at: float
    reason: str


def evaluate(
    policy: ResetPolicy,
    session: SessionFacts,
    processes: Sequence[ProcessView],
    *,
    settings: StalenessSettings,
    zone: tzinfo,
    now: float,
) -> Decision:
    if policy.mode == ResetMode.NONE:
        return Keep(next_check=inf, reason="resets are off")
    if not session.has_messages:
        return Keep(next_check=inf, reason="no person has written since it began")
    due = min(_dues(policy, session, zone, now), key=lambda due: due.at)
    if due.at > now:
        return Keep(next_check=due.at, reason=due.reason)
    if session.busy:
        turn = "waits for your answer" if session.asks else "runs"
        return Later(next_check=now + CHECK_AGAIN_S, reason=f"{due.reason}, after the turn that {turn}")
    working = {process.id: why for process in processes if (why := blocking(process, settings, now))}
    if working:
        by = tuple(process for process in processes if process.id in working)
        names = "; ".join(f"{process.command} (pid {process.pid}): {working[process.id]}" for process in by)
        return Blocked(by=by, next_check=now + CHECK_AGAIN_S, reason=f"{due.reason}, but work goes on in {names}")
    return ResetDue(reason=due.reason, stale=tuple(process for process in processes if process.ended_at is None))


def clock_was_set(wall_s: float, elapsed_s: float) -> bool:
    """Return whether the clock was set. `elapsed_s`: on a clock that cannot be set."""
    return abs(wall_s - elapsed_s) > _STEP_S


def next_boundary(at_hour: int, zone: tzinfo, now: float) -> float:
    """Return the first daily boundary after `now`."""
    return next(at for days in range(-1, 5) if (at := _boundary(at_hour, zone, now, days)) is not None and at > now)


def _dues(policy: ResetPolicy, session: SessionFacts, zone: tzinfo, now: float) -> list[_Due]:
    dues = []
    if policy.mode in (ResetMode.IDLE, ResetMode.BOTH):
        dues.append(_idle(policy, session, now))
    if policy.mode in (ResetMode.DAILY, ResetMode.BOTH):
        dues.append(_daily(policy, session, zone, now))
    return dues


def _idle(policy: ResetPolicy, session: SessionFacts, now: float) -> _Due:
    idle_s = policy.idle_minutes * 60.0
    if session.active_at - now > idle_s:
        return _Due(at=now, reason=_UNKNOWN)
    return _Due(at=session.active_at + idle_s, reason=f"idle for {lasting(max(idle_s, now - session.active_at))}")


def _daily(policy: ResetPolicy, session: SessionFacts, zone: tzinfo, now: float) -> _Due:
    if session.active_at - now > _DAY_S:
        return _Due(at=now, reason=_UNKNOWN)
    at = next_boundary(policy.at_hour, zone, session.active_at)
    return _Due(at=at, reason=f"the daily reset at {policy.at_hour}:00")


def _boundary(at_hour: int, zone: tzinfo, now: float, days: int) -> float | None:
    """That of a local day, counted from today. An hour that comes twice counts the first time.

    In place of one that the clocks skip it is the moment to which they skip. None: there was no such day.
    """
    day = _local(now, zone).date() + timedelta(days=days)
    wanted = datetime.combine(day, time(at_hour))
    first = wanted.replace(tzinfo=zone)
    if _local(first.timestamp(), zone) == wanted:
        return first.timestamp()
    # Read with the offset of after the gap it lies before the gap, and the other way round.
    before, after = int(first.replace(fold=1).timestamp()), int(first.timestamp())
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (before, middle) if _local(middle, zone) >= wanted else (middle, after)
    return float(after) if _touches(day, _local(before, zone), _local(after, zone)) else None


def _touches(day: date, before: datetime, after: datetime) -> bool:
    """Return whether a day still has an hour when the clock skips from one time to another."""
    return before.date() == day or after.date() == day


def _local(at: float, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(at, zone).replace(tzinfo=None)
