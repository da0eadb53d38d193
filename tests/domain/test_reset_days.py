"""Days of a conversation over the real actors: messages, turns, builds, compressions, restarts, clocks that are set.

The days are those on which clocks change, too. What is due is worked out here by arithmetic of its own. Every due
reset comes within a minute unless something works; none comes early, in a turn, or twice for one reason; each that
waits is explained.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from hermes.domain.ids import SessionId, SessionKey
from hermes.domain.records import Ended, MessageReceived
from hermes.domain.reset_policy import ResetMode, ResetPolicy
from hermes.domain.session.state import Phase, Session
from tests.actors.harness import SessionHarness
from tests.actors.reset.reset_harness import DAY, HOUR, KEY, MINUTE, TICK_S, Days, days, settings
from tests.domain import local_days
from tests.support.journals import LoopJournal

PROMISED_S = 60.0


@dataclass(frozen=True)
class Say:
    turn_s: float = 0.0


@dataclass(frozen=True)
class Restart:
    down_s: float


@dataclass(frozen=True)
class Build:
    """Works for so long."""

    for_s: float


@dataclass(frozen=True)
class Compress:
    pass


@dataclass(frozen=True)
class ClockSet:
    by_s: float


Happening = Say | Restart | Build | Compress | ClockSet


class Life:
    def __init__(self, policy: ResetPolicy, zone: str, day: date, lead_h: int) -> None:
        self.policy = policy
        self.zone = zone
        self.about = day
        self.journal = LoopJournal()
        self.now = datetime.combine(day, time(), UTC).timestamp() - lead_h * HOUR
        self.set_by = 0.0  # the clock, since the beginning
        self.builds: dict[str, float] = {}  # until when, on a clock that cannot be set
        self.quiet_since = self.now  # nothing has changed since that could put a reset off; on the same clock
        self.stack = AsyncExitStack()
        self.here: SessionHarness
        self.day: Days

    async def begin(self) -> None:
        rules = settings(self.policy, zone=ZoneInfo(self.zone))
        self.here, self.day = await self.stack.enter_async_context(days(rules, self.journal, self.now))
        self.quiet_since = self.steady

    @property
    def steady(self) -> float:
        return self.here.now - self.set_by

    async def end(self) -> None:
        self.now = self.here.now
        await self.stack.aclose()

    async def happen(self, happening: Happening) -> None:
        match happening:
            case Say(turn_s=turn_s):
                await self.day.say(answer=False)
                await self.passes(turn_s)
                await self.here.answer_next()
                self.quiet_since = self.steady
            case Restart(down_s=down_s):
                processes = self.here.processes.all
                await self.end()
                self.now += down_s
                await self.begin()
                self.here.processes.all = processes
                self.see_builds()
                await self.passes(2 * TICK_S)
            case Build(for_s=for_s):
                session = self.current()
                if session is not None:
                    name = f"build {len(self.builds)}"
                    self.builds[name] = self.steady + for_s
                    self.day.work(session.root or session.id, name)
            case Compress():
                session = self.current()
                if session is not None and session.phase == Phase.IDLE and session.messages:
                    await self.here.desk.compress(session.id)
                    await self.here.summarise_next()
                    self.quiet_since = self.steady
            case ClockSet(by_s=by_s):
                self.here.now += by_s
                self.here.set_by += by_s
                self.set_by += by_s
                self.quiet_since = self.steady
                await self.day.passes_idly(3 * TICK_S)

    async def passes(self, seconds: float) -> None:
        """Up to each end of a build, and a bit further, where a reset may come."""
        end = self.steady + seconds
        while self.steady < end:
            stops = [until for until in self.builds.values() if self.steady < until < end]
            await self.day.passes(min([*stops, end]) - self.steady)
            self.see_builds()
            await self.day.passes(min(2 * TICK_S, max(0.0, end - self.steady)))
            await self.check()

    def see_builds(self) -> None:
        now, before = self.steady, self.here.processes.working
        self.here.processes.working = {name for name, until in self.builds.items() if until > now}
        if before != self.here.processes.working:
            self.quiet_since = now
        for name, until in self.builds.items():
            if until <= now:
                self.day.ends(name)

    def current(self) -> Session | None:
        bound = self.journal.engine.bound(SessionKey(KEY))
        return None if bound is None else self.journal.engine.head(bound)

    def is_due(self, session: Session, at: float) -> bool:
        idle = self.policy.mode in (ResetMode.IDLE, ResetMode.BOTH)
        daily = self.policy.mode in (ResetMode.DAILY, ResetMode.BOTH)
        boundary = local_days.latest(self.zone, self.about, self.policy.at_hour, at)
        ahead_s, idle_s = session.active_at - at, self.policy.idle_minutes * MINUTE
        too_far_ahead = ahead_s > min(idle_s if idle else DAY, DAY if daily else idle_s)
        return too_far_ahead or (idle and -ahead_s >= idle_s) or (daily and session.active_at < boundary)

    async def check(self) -> None:
        session = self.current()
        if session is None or session.phase != Phase.IDLE or not session.messages:
            return
        rested = self.steady - self.quiet_since > PROMISED_S
        before = self.here.now - PROMISED_S
        if not (rested and self.is_due(session, before) and self.is_due(session, self.here.now)):
            return
        working = self.here.processes.working
        assert working, f"overdue at {datetime.fromtimestamp(self.here.now, ZoneInfo(self.zone))}"
        assert session.blocked_by
        assert "One is due and blocked" in (await self.here.desk.view(session.id)).why

    def check_ends(self) -> None:
        for head in self.journal.engine.recent(1000):
            log = [entry.record for entry in self.journal.engine.log(head.id)]
            for place, record in enumerate(log):
                if isinstance(record, Ended) and record.notice is not None:
                    assert self.is_due(head, record.at)
                    assert not any(isinstance(later, MessageReceived) for later in log[place:])
                    assert self.journal.engine.due_at(SessionId(head.id)) is None


async def live(life: Life, history: list[tuple[float, Happening]]) -> None:
    await life.begin()
    try:
        for gap_s, happening in history:
            await life.passes(gap_s)
            await life.happen(happening)
        await life.passes(30 * HOUR)
        life.check_ends()
    finally:
        await life.end()


gaps = st.floats(1, 10 * MINUTE) | st.floats(1, 10 * HOUR)
steps = st.floats(1, 90) | st.floats(1, 6 * HOUR) | st.floats(20 * HOUR, 2 * DAY)
happenings = st.one_of(
    st.builds(Say, turn_s=st.just(0.0) | st.floats(1, 3 * HOUR)),
    st.builds(Say),
    st.builds(Restart, down_s=st.floats(0, 5 * HOUR)),
    st.builds(Build, for_s=st.floats(1, 5 * HOUR)),
    st.just(Compress()),
    st.builds(ClockSet, by_s=steps | steps.map(lambda by_s: -by_s)),
)


@pytest.mark.system  # takes half a minute
@examples(max_examples=500, deadline=None)
@given(
    policy=st.builds(
        ResetPolicy,
        mode=st.sampled_from([ResetMode.IDLE, ResetMode.DAILY, ResetMode.BOTH]),
        idle_minutes=st.sampled_from([5, 120]),
        at_hour=st.sampled_from([0, 2, 6, 13, 23]),
    ),
    place=st.sampled_from(local_days.ZONES_AND_DAYS),
    lead_h=st.integers(0, 48),
    history=st.lists(st.tuples(gaps, happenings), min_size=1, max_size=8),
)
def test_every_due_reset_comes_within_a_minute_over_the_real_actors(
    policy: ResetPolicy, place: tuple[str, date], lead_h: int, history: list[tuple[float, Happening]]
) -> None:
    asyncio.run(live(Life(policy, *place, lead_h), history))
