"""A world in which time goes by: real sessions, directory and reset clock, and a clock that tests move."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

from hermes.actors.reset.reset_rules import ResetSettings
from hermes.actors.reset.reset_scheduler import Tick
from hermes.app.actor_system import DIRECTORY, RESETS
from hermes.domain.ids import Seq, SessionId
from hermes.domain.operations import Append
from hermes.domain.process.process_record import ProcessView
from hermes.domain.records import SessionStarted
from hermes.domain.reset_policy import PolicyBook, ResetMode, ResetPolicy
from hermes.domain.session.state import Session
from hermes.domain.source import Source
from hermes.domain.turn.submission import Receipt
from tests.actors.harness import SessionHarness, world
from tests.support.journals import LoopJournal

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
TICK_S = 20.0
START = datetime(2026, 5, 18, 9, tzinfo=UTC).timestamp()
CHAT = Source(platform="telegram", user="ann")
KEY = "agent:main:telegram:dm:7"
BOTH = ResetPolicy(mode=ResetMode.BOTH, idle_minutes=120, at_hour=6)


def settings(policy: ResetPolicy = BOTH, **changes: object) -> ResetSettings:
    return replace(ResetSettings(book=PolicyBook(default=policy)), **changes)  # type: ignore[arg-type]


class Days:
    """A conversation over days, under one key."""

    def __init__(self, here: SessionHarness) -> None:
        self.here = here
        here.ids = here.journal.engine.stats().sessions  # new ids go on where an earlier life stopped
        self._said = 0

    async def say(self, *, key: str = KEY, source: Source = CHAT, answer: bool = True) -> Receipt:
        self._said += 1
        receipt = await self.here.say(f"m{self._said} at {self.here.now}", key=key, source=source)
        if answer:
            await self.here.answer_next()
        return receipt

    def store(self, like: SessionId, count: int) -> list[SessionId]:
        """Many sessions at once, each as that one is."""
        engine = self.here.journal.engine
        names = [SessionId(f"stored-{n}") for n in range(count)]
        head = replace(self.stored(like), next_seq=Seq(1), parent=None)
        started = SessionStarted(at=head.active_at, key=head.key, source=CHAT, reason="first message")
        for name in names:
            mine = replace(head, id=name)
            write = Append(
                session=name,
                expected_seq=Seq(0),
                epoch=engine.epoch,
                records=(started,),
                head=mine,
                pending=False,
                due=self.here.rules.due(mine, self.here.now),
            )
            assert engine.commit([(write,)]) == [None]
        return names

    async def passes(self, seconds: float) -> None:
        """Time goes by; the clock ticks when it matters, and a process beats with every tick."""
        end = self.here.now + seconds
        while self.here.now < end:
            [*due] = self.here.journal.engine.due(end, 1)
            ahead = max(due[0][0] - self.here.now if due else seconds, 0.0)
            whole = TICK_S * (1 + ahead // TICK_S)
            self.here.now = min(self.here.now + whole, end)
            await self.tick()

    async def tick(self) -> None:
        self.here.system.children[RESETS].tell(Tick())
        await self.here.settle()

    async def passes_idly(self, seconds: float) -> None:
        """Time goes by tick after tick, as it truly does."""
        for _ in range(int(seconds // TICK_S)):
            self.here.now += TICK_S
            await self.tick()

    def stored(self, session: str) -> Session:
        head = self.here.journal.engine.head(SessionId(session))
        assert head is not None
        return head

    def forget(self, session: str, command: str) -> None:
        """A process that was started now and does nothing any more, though it is there."""
        now, processes = self.here.now, self.here.processes
        processes.all.append(
            ProcessView(
                id=command,
                session=SessionId(session),
                command=command,
                pid=101 + len(processes.all),
                started_at=now,
                heartbeat_at=now,
                active_at=now,
            )
        )

    def work(self, session: str, command: str) -> None:
        self.forget(session, command)
        self.here.processes.working.add(command)

    def ends(self, command: str) -> None:
        self.here.processes.all = [each for each in self.here.processes.all if each.id != command]


@asynccontextmanager
async def days(
    resets: ResetSettings | None = None, journal: LoopJournal | None = None, now: float = START
) -> AsyncIterator[tuple[SessionHarness, Days]]:
    async with world(journal, resets or settings(), children=(DIRECTORY, RESETS), now=now) as here:
        lived = Days(here)
        await here.settle()
        yield here, lived
