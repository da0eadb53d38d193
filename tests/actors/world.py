"""A small world for session tests: real actors and machine, a journal without threads, turns that end when told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from pykka import ActorRef

from hermes.actors.directory import SessionDirectory
from hermes.actors.directory_protocol import DirectorySettings
from hermes.actors.front_desk import FrontDesk
from hermes.actors.hub import EventHub
from hermes.actors.loop import live_actors
from hermes.ports import Identity, Receipt, Submission, TurnJob, TurnReport
from hermes.supervision.policy import RestartIntensity
from hermes.types import EncodedMessage, Failure, InboundKey, SessionId, SessionKey, Source, TurnId, Usage
from tests.journals import LoopJournal

SETTINGS = DirectorySettings(idle_after_s=600, max_live=1000, max_queue=4, memory_limit_bytes=0, seen_for_s=86400)


@dataclass
class Work:
    """One turn in flight."""

    job: TurnJob
    report: Callable[[TurnReport], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True

    def answer(self, text: str = "yes") -> None:
        job = self.job
        usage = Usage(prompt_tokens=1, completion_tokens=1)
        self.report(
            TurnReport(turn=job.turn, attempt=job.attempt, text=text, model="m", finish_reason="stop", usage=usage)
        )

    def fail(self, failure: Failure) -> None:
        self.report(TurnReport(turn=self.job.turn, attempt=self.job.attempt, failure=failure))


@dataclass
class FakeTurns:
    """Remembers what was started. `poison` raises in whoever starts a turn whose prompt holds it."""

    started: list[Work] = field(default_factory=list)
    poison: bytes = b"no such text"

    def start(self, job: TurnJob, report: Callable[[TurnReport], None]) -> Work:
        if any(self.poison in bytes(message) for message in job.messages):
            raise RuntimeError("poisoned")
        self.started.append(Work(job=job, report=report))
        return self.started[-1]

    def prompt(self, number: int = -1) -> list[str]:
        return [message.decode() for message in self.started[number].job.messages]


class World:
    def __init__(self, journal: LoopJournal) -> None:
        self.now = 1000.0
        self.memory = 0
        self.journal = journal
        self.turns = FakeTurns()
        self.hub = EventHub()
        self._ids = 0
        self.directory: ActorRef[SessionDirectory] = SessionDirectory.start(
            settings=SETTINGS,
            journal=journal,
            turns=self.turns,
            hub=self.hub,
            clock=lambda: self.now,
            identity=Identity(session=self._next_id, turn=lambda: TurnId("unused")),
            restart_policy=RestartIntensity(first_delay_s=0.0, max_delay_s=0.0),
            memory_bytes=lambda: self.memory,
            name="directory",
        )
        self.desk = FrontDesk(
            directory=lambda: self.directory, journal=cast("Any", journal), clock=lambda: self.now, max_waiting=100
        )

    def _next_id(self, now: float) -> SessionId:
        self._ids += 1
        return SessionId(f"fresh-{self._ids}")

    async def say(
        self, text: str, session: str | None = None, *, key: str | None = None, inbound: str | None = None
    ) -> Receipt:
        return await self.desk.submit(
            Submission(
                turn=TurnId(text),
                messages=(said(text),),
                source=Source(platform="api"),
                session=None if session is None else SessionId(session),
                key=None if key is None else SessionKey(key),
                inbound=None if inbound is None else InboundKey(inbound),
                fingerprint=text.encode() if inbound else b"",
            )
        )

    async def phase(self, session: str) -> str:
        return (await self.desk.view(SessionId(session))).session.phase

    async def answer_next(self, text: str = "yes") -> Work:
        work = await self.started(1)
        self.turns.started.pop(0)
        work.answer(text)
        await self.settle()
        return work

    async def started(self, count: int) -> Work:
        await until(lambda: len(self.turns.started) >= count)
        return self.turns.started[0]

    async def settle(self) -> None:
        """Until nobody has mail."""
        await until(lambda: all(actor.statistics().mailbox == 0 for actor in live_actors()), rounds=5)

    def live(self) -> set[str]:
        return {actor.name for actor in live_actors() if actor.kind == "session"}


def said(text: str) -> EncodedMessage:
    return EncodedMessage(f'{{"role":"user","content":"{text}"}}'.encode())


async def until(condition: Callable[[], bool], *, rounds: int = 1, within_s: float = 5.0) -> None:
    """Until it holds this many rounds of the loop in a row."""
    async with asyncio.timeout(within_s):
        held = 0
        while held < rounds:
            await asyncio.sleep(0)
            held = held + 1 if condition() else 0


@asynccontextmanager
async def world(journal: LoopJournal | None = None) -> AsyncIterator[World]:
    here = World(journal or LoopJournal())
    try:
        yield here
    finally:
        await here.directory.stop(block=False)
        await until(lambda: not live_actors())
