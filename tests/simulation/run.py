"""One seed, from the first message to the verdict: faults on, then off, then everything must drain, then the judge.

`run(seed)` is all there is to call. The same seed gives the same trace, to the last line.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from random import Random

from loguru import logger

from hermes.actors.kernel.actor import live_actors
from hermes.actors.reset.reset_rules import ResetSettings
from hermes.domain.ids import SessionId
from hermes.domain.reset_policy import PolicyBook, ResetMode, ResetPolicy
from hermes.domain.session.state import Phase, Session, is_pending
from hermes.domain.values import dataclass
from tests.simulation.chat import Chatter, SimulatedPlatform
from tests.simulation.daemon import SimulatedDaemon
from tests.simulation.disk import Disk
from tests.simulation.machine import Machine
from tests.simulation.outside import Outside
from tests.simulation.people import API, Town
from tests.simulation.request import Request
from tests.simulation.survey import survey
from tests.simulation.sweeps import Sweeps
from tests.simulation.witness import Witness
from tests.support.judge import LIMBO_S, Open, Sample, Violation, judge

CALM_S = 240.0  # at most, until everything has drained
LOOK_EVERY_S = 5.0
FEW = 4  # the reset clock or a sweep may be writing
MAX_ACTORS = 20  # a handful of sessions, and those that live as long as the daemon
MOMENTS = ("before a commit", "after a commit", "after an effect", "after a send")
POLICIES = (
    ResetPolicy(),
    ResetPolicy(mode=ResetMode.IDLE, idle_minutes=2),
    ResetPolicy(mode=ResetMode.BOTH, idle_minutes=30, at_hour=8),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    seed: int
    violations: tuple[Violation, ...]
    digest: str
    trace: tuple[str, ...]


def brief(seed: int) -> tuple[int, str, list[str]]:
    """Of a run in another process: the seed, the trace's digest, and what the judge found."""
    verdict = run(seed)
    return seed, verdict.digest, [str(violation) for violation in verdict.violations]


def run(seed: int, disk: type[Disk] = Disk) -> Verdict:
    """`disk` can be one that breaks promises, to see whether that is noticed."""
    logger.disable("hermes")  # failures are made by the hundred, and formatting them takes longer than all the rest
    simulation = Simulation(seed, disk)
    try:
        simulation.run()
    finally:
        logger.enable("hermes")
    outside = simulation.outside
    return Verdict(
        seed=seed, violations=tuple(judge(outside.history)), digest=outside.digest(), trace=tuple(outside.trace)
    )


class Simulation:
    max_actors = MAX_ACTORS

    def __init__(self, seed: int, disk: type[Disk]) -> None:
        self.outside = Outside(seed, disk)
        chance = self.outside.chance
        self.resets = ResetSettings(book=PolicyBook(default=chance.choice(POLICIES)))
        self.town = Town(self.outside, people=chance.randint(1, 4), conversations=chance.randint(1, 3))
        self.sweeps = Sweeps(self.outside, self.town)
        self.platform = SimulatedPlatform(self.outside)
        self.machine = Machine(self.outside)
        self.outside.disk.witness = Witness(self.outside)
        chatters = range(chance.randint(0, 3))
        self.chatters = [Chatter(self.town, self.outside, number, self.platform) for number in chatters]
        self._last_stop = False
        self.outside.on_killed = self._start_later

    def run(self) -> None:
        self.start()
        self.town.begin()
        for chatter in self.chatters:
            self.outside.later(self.outside.chance.uniform(0, 5), chatter.act)
        Accidents(self).begin()
        self.sweeps.begin()
        self.outside.run_until(self.outside.chance.uniform(20, 100))
        self.finish()

    def finish(self) -> None:
        """Faults off, everything drains, and what is left is written down."""
        self._calm_down()
        self._drain()
        self._stop_for_good()
        self.outside.history.add(*survey(self.outside.disk), *self.platform.happenings())
        self.outside.history.surveyed = True

    # ------------------------------------------------------------ the daemon comes and goes

    @property
    def daemon(self) -> SimulatedDaemon | None:
        process = self.outside.process
        return process if isinstance(process, SimulatedDaemon) else None

    def start(self) -> None:
        if self.outside.process is None and not self._last_stop:
            self.outside.note("started")
            self.outside.process = self.make_daemon()

    def make_daemon(self) -> SimulatedDaemon:
        return SimulatedDaemon(self.outside, self.resets, self.platform, self.machine, self._on_stopped)

    def _start_later(self) -> None:
        self.outside.later(self.outside.chance.choice((0.05, 0.5, 5.0)), self.start)

    def _on_stopped(self, daemon: SimulatedDaemon) -> None:
        self.outside.note("stopped")
        if self.outside.process is daemon:
            self.outside.process = None
            self._start_later()

    def stop(self, reason: str) -> None:
        if self.daemon is not None:
            self.daemon.stop(reason)

    # ------------------------------------------------------------ the end

    def _calm_down(self) -> None:
        outside = self.outside
        outside.note("calm")
        outside.faulty = False
        outside.kill_at = ""
        outside.frozen_until = 0.0
        outside.disk.heal()
        if outside.chance.random() < 0.5 or (self.daemon is not None and self.daemon.children.parked):
            self.stop("an operator looks after it")

    def _drain(self) -> None:
        outside = self.outside
        deadline = outside.now + CALM_S
        while outside.now < deadline:
            outside.run_until(outside.now + LOOK_EVERY_S)
            self._look_for_limbo(since=deadline - CALM_S)
            if self.daemon is not None and self.daemon.open:
                if not (self.town.waiting or self._unfinished() or self._unsaid() or self.sweeps.unfinished()):
                    break
                self._help()
        for session in self._unfinished():
            quiet_s = outside.now - outside.disk.written_at[session.id]
            outside.note(f"unfinished {session.id} {session.phase} {quiet_s:.0f}")
            outside.history.add(Open(session=session.id, phase=session.phase, quiet_s=max(quiet_s, LIMBO_S + 1)))
        outside.history.add(Sample(what="exchanges that nobody answers", value=self.town.waiting, limit=0))
        left = len(self.sweeps.unfinished())
        outside.history.add(Sample(what="sessions that are half deleted", value=left, limit=0))
        self._sample()

    def _look_for_limbo(self, since: float) -> None:
        for session in self._unfinished():
            quiet_s = self.outside.now - max(since, self.outside.disk.written_at[session.id])
            rests = session.phase in (Phase.WAITING, Phase.SUSPENDED) or self._may_rest(session)
            if quiet_s > LIMBO_S and not rests:
                self.outside.history.add(Open(session=session.id, phase=session.phase, quiet_s=quiet_s))

    def _may_rest(self, _session: Session) -> bool:
        """Return whether an open session waits for something else that must go on."""
        return False

    def _unfinished(self) -> list[Session]:
        return [row for row in self.outside.disk.sessions() if is_pending(row) or row.queue or row.turn]

    def _unsaid(self) -> bool:
        said = not self.outside.disk.outbox() and not any(chatter.waiting for chatter in self.chatters)
        return not said or bool(self._untold())

    def _untold(self) -> list[SessionId]:
        """Whose processes run, or have ended and nobody has heard of it."""
        processes = self.outside.disk.processes()
        return [each.session for each in processes if each.ended_at is None or (each.notify and not each.told)]

    def _help(self) -> None:
        """What an operator does: answer what waits, take up what is suspended, give what is parked another chance.

        Nothing else: what is open must go on by itself.
        """
        self.sweeps.finish()
        sessions = {row.id: row for row in self.outside.disk.sessions()}
        for session in sorted({_live_end(sessions, each) for each in self._untold()}):
            if session in sessions and sessions[session].phase == Phase.SUSPENDED:
                self.town.ask(partial(_resume, session), _nothing)
        for row in self._unfinished():
            if row.phase == Phase.WAITING:
                self.town.ask(partial(_answer, row.id), _nothing)
            elif row.phase == Phase.SUSPENDED or self._is_held(row):
                self.town.ask(partial(_resume, row.id), _nothing)
            elif self.outside.now - self.outside.disk.written_at[row.id] > LOOK_EVERY_S:
                self.town.ask(partial(_pardon, row.id), _nothing)

    def _is_held(self, row: Session) -> bool:
        return row.phase == Phase.RESUME_PENDING and self.daemon is not None and self.daemon.holds

    def _sample(self) -> None:
        daemon = self.daemon
        if daemon is not None and daemon.open:
            add = self.outside.history.add
            add(Sample(what="watchers", value=daemon.hub.watchers, limit=0))
            add(Sample(what="pieces of work", value=daemon.agent.active, limit=0))
            add(Sample(what="messages on their way to disk", value=daemon.desk.waiting, limit=0))
            add(Sample(what="writes that wait", value=daemon.journal.waiting, limit=FEW))
            add(Sample(what="actors", value=len(live_actors()), limit=self.max_actors))

    def _stop_for_good(self) -> None:
        self._last_stop = True
        self.stop("the end")
        self.outside.run_until(self.outside.now + 30)
        self.outside.history.add(Sample(what="daemons left", value=self.daemon is not None, limit=0))
        if self.daemon is not None:
            self.daemon.die()


def _live_end(sessions: Mapping[SessionId, Session], session: SessionId) -> SessionId:
    """What is said to a session that has ended is said to the one that went on."""
    while session in sessions and (successor := sessions[session].successor) is not None:
        session = successor
    return session


async def _answer(session: SessionId, daemon: SimulatedDaemon, _: Request) -> None:
    await daemon.desk.answer(session, "once", API)


async def _resume(session: SessionId, daemon: SimulatedDaemon, _: Request) -> None:
    await daemon.desk.resume(session, "help")


async def _pardon(session: SessionId, daemon: SimulatedDaemon, request: Request) -> None:
    if "is parked" in (await daemon.desk.view(session, exact=True)).why:
        await _resume(session, daemon, request)


def _nothing(*_: object) -> None:
    """Whatever came of it shows on disk."""


class Accidents:
    """What goes wrong while faults are on."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._outside = simulation.outside
        self._chance: Random = simulation.outside.chance
        self._often_s = self._chance.choice((4.0, 10.0, 30.0))

    def begin(self) -> None:
        self._outside.later(self._chance.expovariate(1 / self._often_s), self._strike)

    def _strike(self) -> None:
        outside = self._outside
        if not outside.faulty:
            return
        accident = self._chance.choice(
            (self._kill, self._kill, self._kill_exactly, self._kill_exactly, self._kill_exactly, self._stop,
             self._stop_and_kill, self._fill, self._break, self._slow_down, self._blur, self._set_clock, self._freeze)
        )  # fmt: skip
        outside.note(f"accident {accident.__name__.strip('_')}")
        accident()
        self.begin()

    def _kill(self) -> None:
        self._outside.kill()

    def _kill_exactly(self) -> None:
        self._outside.kill_at = self._chance.choice(MOMENTS)

    def _stop(self) -> None:
        self._simulation.stop("somebody asked for it")

    def _stop_and_kill(self) -> None:
        self._stop()
        self._outside.later(self._chance.choice((0.01, 0.5, 6.0)) * self._chance.random(), self._kill_if_faulty)

    def _kill_if_faulty(self) -> None:
        if self._outside.faulty:
            self._outside.kill()

    def _fill(self) -> None:
        self._outside.disk.full = True
        self._outside.later(self._chance.uniform(0.1, 15), self._empty)

    def _empty(self) -> None:
        self._outside.disk.full = False

    def _break(self) -> None:
        self._outside.disk.broken = True

    def _slow_down(self) -> None:
        self._outside.disk.slow = True
        self._outside.later(self._chance.uniform(1, 20), self._speed_up)

    def _speed_up(self) -> None:
        self._outside.disk.slow = False

    def _blur(self) -> None:
        """Some looks fail."""
        self._outside.disk.unreadable = 0.1
        self._outside.later(self._chance.uniform(0.1, 3), self._clear)

    def _clear(self) -> None:
        self._outside.disk.unreadable = 0.0

    def _set_clock(self) -> None:
        by = self._chance.choice((-7200, -30, 30, 600, 7200, 86400)) * self._chance.random()
        self._outside.note(f"set_clock {'back' if by < 0 else 'forward'}")
        self._outside.set_by += by

    def _freeze(self) -> None:
        self._outside.frozen_at = self._outside.now
        self._outside.frozen_until = self._outside.now + 30
