"""Days of a conversation in virtual time: messages, processes, clocks that are set, restarts.

A keeper follows what the policy says about the next look, and nothing else. What it does is judged by what truly
happened, which the policy does not see: it only knows what a wall clock showed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from math import inf
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.domain.ids import SessionId
from hermes.domain.process.process_record import ProcessView
from hermes.domain.process.staleness import StalenessSettings, blocking, explain
from hermes.domain.reset_policy import (
    Blocked,
    Decision,
    Keep,
    Later,
    ResetDue,
    ResetMode,
    ResetPolicy,
    SessionFacts,
    clock_was_set,
    evaluate,
)
from tests.domain import local_days

MINUTE, HOUR, DAY = 60, 3600, 86400
TICK = 20  # the keeper looks at the clock
BEAT = 5  # a process is looked after
PROMISED = 60  # a due reset comes within this


@dataclass(frozen=True, kw_only=True)
class Message:
    turn_s: int = 10  # that the answer takes


@dataclass(frozen=True, kw_only=True)
class Process:
    command: str
    spells: tuple[tuple[int, int], ...] = ()  # of work: after how long a pause, for how long
    ends_after_s: int | None = None
    unheard_after_s: int | None = None  # its actor is gone


@dataclass(frozen=True, kw_only=True)
class ClockSet:
    by_s: int


@dataclass(frozen=True, kw_only=True)
class Restart:
    down_s: int


Happening = Message | Process | ClockSet | Restart


@dataclass(kw_only=True)
class Child:
    """A process as it truly is, in seconds since the beginning."""

    command: str
    born: int
    work: list[tuple[int, int]]
    ends: float
    unheard: float

    @classmethod
    def of(cls, process: Process, now: int) -> Child:
        work, at = [(now, now)], now
        for pause, length in process.spells:
            work.append((at + pause, at + pause + length))
            at += pause + length
        after = (inf if each is None else now + each for each in (process.ends_after_s, process.unheard_after_s))
        ends, unheard = after
        return cls(command=process.command, born=now, work=work, ends=ends, unheard=unheard)

    def last_work(self, now: int) -> int:
        return max(min(until, now) for since, until in self.work if since <= now)


@dataclass(kw_only=True)
class ResetHarness:
    policy: ResetPolicy
    staleness: StalenessSettings
    zone: str
    day: date  # about which all turns
    lead_h: int = 72  # begun so long before it
    now: int = 0  # true time
    sets: list[tuple[int, int]] = field(default_factory=list)  # of the clock: when, by how much
    children: list[Child] = field(default_factory=list)
    active_at: float = 0.0
    has_messages: bool = False
    turn_until: int = 0
    # The keeper:
    up_since: int = 0
    next_check: float = inf
    settled_from: int = 0  # not to judge before: the clock was set
    look_anew: bool = False
    # What came of it:
    quiet_since: int = 0  # no look, and nothing that would change what is due
    resets: list[tuple[str, float, ResetDue]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    used: set[float] = field(default_factory=set)  # boundaries that had their reset

    def wall(self, at: int) -> float:
        base = datetime.combine(self.day, time(), UTC).timestamp() - self.lead_h * HOUR
        return base + at + sum(by for when, by in self.sets if when <= at)

    def local(self) -> str:
        return f"{datetime.fromtimestamp(self.wall(self.now), ZoneInfo(self.zone)):%d %H:%M}"

    @property
    def busy(self) -> bool:
        return self.now < self.turn_until

    def view(self, child: Child) -> ProcessView:
        beat = int(min(max(self.now - self.now % BEAT, self.up_since, child.born), max(child.unheard, child.born)))
        ended = child.ends <= min(self.now, child.unheard)
        return ProcessView(
            id=child.command,
            session=SessionId("s"),
            command=child.command,
            pid=1,
            started_at=self.wall(self.now) - (self.now - child.born),
            heartbeat_at=self.wall(beat),
            active_at=self.wall(child.last_work(beat)),
            ended_at=self.wall(int(child.ends)) if ended else None,
        )

    # What happens

    def live(self, history: Sequence[tuple[int, Happening]], *, and_then_s: int = 2 * DAY) -> None:
        for gap_s, happening in history:
            self.pass_time(gap_s)
            self.happen(happening)
        self.pass_time(and_then_s)

    def happen(self, happening: Happening) -> None:
        match happening:
            case Message(turn_s=turn_s):
                if self.now >= self.settled_from or not self.children:
                    self.look()
                self.active_at, self.has_messages = self.wall(self.now), True
                self.turn_until = max(self.now, self.turn_until) + turn_s
                self.look()
            case Process():
                self.children.append(Child.of(happening, self.now))
            case ClockSet(by_s=by_s):
                self.sets.append((self.now, by_s))
                if by_s < 0:
                    self.used.clear()
                if clock_was_set(TICK + by_s, TICK):
                    self.settled_from, self.look_anew = self.tick_after(self.tick_after(self.now)), True
                self.quiet_since = self.now
            case Restart(down_s=down_s):
                self.turn_until += down_s if self.busy else 0
                self.now += down_s
                self.up_since = self.settled_from = self.now
                self.look()

    def pass_time(self, seconds: int) -> None:
        end = self.now + seconds
        while (at := self.time_of_look()) <= end:
            self.now = int(at)
            self.check_that_nothing_is_overdue()
            self.look()
        self.now = end
        self.check_that_nothing_is_overdue()

    def time_of_look(self) -> float:
        if self.look_anew:
            return self.settled_from
        due = self.now + self.next_check - self.wall(self.now)
        return inf if due == inf else max(self.settled_from, self.tick_after(max(self.now, int(due)) - 1))

    def tick_after(self, at: int) -> int:
        return at + TICK - (at - self.up_since) % TICK

    def look(self) -> None:
        decision = self.evaluate()
        self.check(decision)
        self.decisions.append(decision)
        if isinstance(decision, ResetDue):
            self.resets.append((self.local(), self.wall(self.now), decision))
            self.has_messages = False
            decision = self.evaluate()
        assert not isinstance(decision, ResetDue), "an empty session was reset"
        self.next_check = decision.next_check
        self.look_anew = False
        self.quiet_since = self.now

    def evaluate(self) -> Decision:
        return evaluate(
            self.policy,
            SessionFacts(active_at=self.active_at, busy=self.busy, has_messages=self.has_messages),
            [self.view(child) for child in self.children],
            settings=self.staleness,
            zone=ZoneInfo(self.zone),
            now=self.wall(self.now),
        )

    # What must be true

    def is_due(self, at: int) -> bool:
        if not self.has_messages:
            return False
        ahead_s = self.active_at - self.wall(at)
        idle_s = self.policy.idle_minutes * MINUTE
        idle = self.policy.mode in (ResetMode.IDLE, ResetMode.BOTH) and (-ahead_s >= idle_s or ahead_s > idle_s)
        daily = self.policy.mode in (ResetMode.DAILY, ResetMode.BOTH) and (
            ahead_s > DAY or self.active_at < self.boundary(at)
        )
        return idle or daily

    def boundary(self, at: int) -> float:
        return local_days.latest(self.zone, self.day, self.policy.at_hour, self.wall(at))

    def works(self, child: Child) -> bool:
        """As anyone would say who sees it: it is doing something, its actor is there, and it is not too old."""
        heard = self.now < min(child.ends, child.unheard)
        doing = any(since <= self.now - BEAT and self.now < until for since, until in child.work)
        return heard and doing and self.now - child.born < self.staleness.max_age_s

    def set_back_since(self, at: int) -> int:
        return sum(-by for when, by in self.sets if when >= at and by < 0)

    def check_that_nothing_is_overdue(self) -> None:
        then = self.now - PROMISED
        if then > self.quiet_since:
            assert not (self.is_due(then) and self.is_due(self.now)), f"overdue at {self.local()}"

    def check(self, decision: Decision) -> None:
        match decision:
            case Keep(next_check=next_check, reason=reason):
                assert not self.is_due(self.now)
                assert next_check > self.wall(self.now)
                assert reason
            case Later(reason=reason):
                assert self.busy
                assert self.is_due(self.now)
                assert reason.endswith("after the turn that runs")
            case Blocked():
                self.check_block(decision)
            case ResetDue():
                self.check_reset(decision)

    def check_block(self, decision: Blocked) -> None:
        assert not self.busy
        assert self.is_due(self.now)
        assert decision.by
        for process in decision.by:
            why = blocking(process, self.staleness, self.wall(self.now))
            assert f"{process.command} (pid {process.pid}): {why}" in decision.reason
            assert f"A reset would wait for it: {why}" in explain(process, self.staleness, self.wall(self.now))
            (child,) = (child for child in self.children if child.command == process.id)
            assert self.now < self.believed_alive_until(child)
            worked = child.last_work(self.now)
            assert self.now - worked < self.staleness.stale_after_s + self.set_back_since(worked) + BEAT
            assert self.now - child.born < self.staleness.max_age_s

    def believed_alive_until(self, child: Child) -> float:
        if child.ends <= child.unheard:
            return child.ends
        heard = min(child.unheard, self.now)
        return heard + self.staleness.heartbeat_fresh_s + self.set_back_since(int(heard))

    def check_reset(self, decision: ResetDue) -> None:
        assert not self.busy
        assert self.is_due(self.now)
        assert decision.reason
        assert not [child.command for child in self.children if self.works(child)]
        assert {process.id for process in decision.stale} == {
            child.command for child in self.children if self.now < child.ends or child.unheard < child.ends
        }
        if decision.reason.startswith("the daily reset"):
            boundary = self.boundary(self.now)
            assert boundary not in self.used, "two daily resets on one day"
            self.used.add(boundary)


lengths = st.integers(0, 5 * MINUTE) | st.integers(0, 4 * HOUR)
gaps = st.integers(1, 10 * MINUTE) | st.integers(1, 10 * HOUR)
spells = st.lists(st.tuples(lengths, lengths), max_size=3).map(tuple)
steps = st.integers(1, 90) | st.integers(1, 6 * HOUR) | st.integers(20 * HOUR, 2 * DAY)
messages = st.builds(Message, turn_s=st.integers(1, MINUTE) | lengths)
happenings = st.one_of(
    messages,
    messages,
    st.builds(
        Process,
        command=st.uuids().map(str),
        spells=spells,
        ends_after_s=st.none() | lengths,
        unheard_after_s=st.none() | st.none() | lengths,
    ),
    st.builds(ClockSet, by_s=steps | steps.map(lambda by_s: -by_s)),
    st.builds(Restart, down_s=st.integers(0, MINUTE) | lengths),
)


@pytest.mark.system  # takes half a minute
@settings(max_examples=500, deadline=None)
@given(
    policy=st.builds(
        ResetPolicy,
        mode=st.sampled_from([ResetMode.IDLE, ResetMode.DAILY, ResetMode.BOTH, ResetMode.BOTH, ResetMode.NONE]),
        idle_minutes=st.sampled_from([5, 120, 1440]),
        at_hour=st.sampled_from([2, 0, 1, 3, 4, 6, 23]),
    ),
    staleness=st.sampled_from([StalenessSettings(), StalenessSettings(stale_after_s=300, max_age_s=2 * HOUR)]),
    place=st.sampled_from(local_days.ZONES_AND_DAYS),
    lead_h=st.integers(0, 48),
    history=st.lists(st.tuples(gaps, happenings), min_size=1, max_size=12),
)
def test_every_due_reset_comes_within_a_minute_unless_something_works(
    policy: ResetPolicy,
    staleness: StalenessSettings,
    place: tuple[str, date],
    lead_h: int,
    history: list[tuple[int, Happening]],
) -> None:
    zone, day = place
    ResetHarness(policy=policy, staleness=staleness, zone=zone, day=day, lead_h=lead_h).live(history)


def forgetful() -> ResetHarness:
    """From midnight of the 18th, under a policy that two forgotten servers are known to have blocked for days."""
    policy = ResetPolicy(mode=ResetMode.BOTH, idle_minutes=120, at_hour=6)
    return ResetHarness(policy=policy, staleness=StalenessSettings(), zone="UTC", day=date(2026, 5, 21))


def test_two_forgotten_servers_block_neither_idle_nor_daily_resets() -> None:
    world = forgetful()
    world.live(
        [
            (9 * HOUR, Message()),
            (MINUTE, Process(command="python3 -m http.server 8765")),
            (MINUTE, Process(command="python3 -m http.server 8766")),
            (10 * HOUR, Message()),  # 19:02
            (10 * HOUR, Message()),  # 05:02
        ]
    )
    assert [(when, reset.reason, len(reset.stale)) for when, _, reset in world.resets] == [
        ("18 11:00", "idle for 2 h", 2),
        ("18 21:02", "idle for 2 h", 2),
        ("19 06:00", "the daily reset at 6:00", 2),
    ]
    assert not any(isinstance(decision, Blocked) for decision in world.decisions)


def test_a_build_that_works_for_three_hours_is_not_cut_off_and_a_server_beside_it_is_reported() -> None:
    world = forgetful()
    build = Process(command="make all", spells=((0, 3 * HOUR),), ends_after_s=3 * HOUR)
    world.live([(9 * HOUR, Message()), (0, Process(command="http.server")), (0, build)])
    blocks = [decision for decision in world.decisions if isinstance(decision, Blocked)]
    assert {process.command for block in blocks for process in block.by} == {"make all"}
    assert blocks[0].reason == "idle for 2 h, but work goes on in make all (pid 1): it did something 0 s ago"
    [(when, _, reset)] = world.resets
    assert (when, reset.reason) == ("18 12:00", "idle for 3 h")
    assert [process.command for process in reset.stale] == ["http.server"]


def test_a_machine_that_slept_does_not_cut_off_the_build_that_wakes_up_with_it() -> None:
    world = forgetful()
    build = Process(command="make all", spells=((0, 90 * MINUTE),), ends_after_s=90 * MINUTE)
    world.live([(9 * HOUR, Message()), (0, build), (HOUR, ClockSet(by_s=8 * HOUR))])
    assert [when for when, _, _ in world.resets] == ["18 18:30"]


def test_a_turn_that_runs_over_the_daily_hour_is_answered_before_the_reset() -> None:
    world = forgetful()
    world.live([(5 * HOUR, Message(turn_s=90 * MINUTE))])
    assert [(when, reset.reason) for when, _, reset in world.resets] == [("18 06:30", "the daily reset at 6:00")]


def test_a_reset_that_came_due_while_the_daemon_was_down_happens_at_its_start() -> None:
    world = forgetful()
    world.live([(9 * HOUR, Message()), (MINUTE, Restart(down_s=5 * HOUR))])
    assert [(when, reset.reason) for when, _, reset in world.resets] == [("18 14:01", "idle for 5 h 1 min")]
