"""Subagents in the simulation: calls that delegate, `/background`, faults, and what must be on disk after.

The actors, the child service and the delegations are the real ones. Models and the other tools are played. People
write, stop, end, undo, compress and delete as in every simulated life, and they stop, steer and answer subagents.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from loguru import logger

from hermes.app.actor_system import ActorSystem
from hermes.domain.access.role import Role
from hermes.domain.child.child import PREFIX, Purpose
from hermes.domain.errors import HermesError
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.read.lineage import find_family
from hermes.domain.session.jobs import ModelJob, ModelReport, ToolJob, ToolReport
from hermes.domain.session.protocol import StartBackground
from hermes.domain.session.state import Phase, Session
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Busy, Submission
from hermes.domain.turn.tool_call import Call, CallOutcome, Effect
from hermes.domain.values import dataclass
from hermes.services.children.delegation_purpose import BackgroundPurpose, DelegationPurpose, DelegationSettings
from tests.actors.talk import assistant, result, user
from tests.simulation.daemon import SimulatedDaemon
from tests.simulation.delegation_ledger import DelegationLedger
from tests.simulation.disk import Disk
from tests.simulation.minds import Minds
from tests.simulation.people import API, PAUSES_S
from tests.simulation.request import Request
from tests.simulation.run import Simulation
from tests.simulation.sweeps import Sweeps
from tests.support.judge import LIMBO_S, judge

TOOL: Final = "delegate_task"
OFFERED: Final = {"write": "files", "read": "files", TOOL: "delegation"}
LOOK_S: Final = 1.0
ORPHAN_S: Final = 65.0  # after which a child that nobody waits for has ended, if nothing hinders the daemon


class DelegatingMinds(Minds):
    """Models that sometimes delegate, in conversations and as orchestrators."""

    system: ActorSystem
    slow_until: dict[SessionId, float]  # sessions whose model thinks for long

    async def answer(
        self, job: ModelJob, _models: object, _caller: object, said: list[str], _retried: object = None
    ) -> ModelReport:
        outside, assignment = self._outside, job.assignment
        may_delegate = assignment is None or TOOL in assignment.tools
        if may_delegate and not job.last and outside.happens(0.3):
            await asyncio.sleep(outside.chance.uniform(0.01, 0.5))
            return self._delegated(job)
        if assignment is not None and outside.chance.random() < 0.1:
            took_s = outside.chance.choice((10.0, 120.0)) * outside.chance.random()
            self.slow_until[job.session] = outside.time() + took_s
            await asyncio.sleep(took_s)
        return await super().answer(job, _models, _caller, said, _retried)

    def _delegated(self, job: ModelJob) -> ModelReport:
        chance = self._outside.chance
        arguments: dict[str, str] = {}
        calls = []
        for _ in range(chance.choice((1, 1, 1, 2))):
            name, number = self._outside.number("call"), chance.choice((1, 1, 2, 3, 6))
            tasks = [{"goal": f"{name} {n}", "role": chance.choice(("leaf", "orchestrator"))} for n in range(number)]
            arguments[name] = json.dumps({"tasks": tasks} if number > 1 else tasks[0])
            parallel = chance.random() < 0.5
            calls.append(Call(id=name, name=TOOL, parallel=parallel, effect=Effect.DURABLE, delegates=number))
        if chance.random() < 0.3:
            calls.append(self._call())
        message = json.loads(assistant("", calls))
        for call in message["tool_calls"]:
            call["function"]["arguments"] = arguments.get(call["id"], "{}")
        report = self._said(job, "", tuple(calls))
        return replace(report, message=EncodedMessage(json.dumps(message).encode()))

    async def run(self, job: ToolJob, *_: object) -> ToolReport:
        if job.name != TOOL:
            return await super().run(job, *_)
        outside = self._outside
        outside.note(f"run {job.session} {job.call} {job.name} {' '.join(job.children)}")
        began, text, outcome = outside.time(), "", CallOutcome.OK
        try:
            results = await self.system.delegations.results(job.session, job.turn, job.children, outside.note)
            text = f"results {json.dumps({each.child: each.text for each in results})}"
        except HermesError as error:  # as a tool of the real toolbox
            text, outcome = f"failed {error!r}", CallOutcome.ERROR
        return ToolReport(
            turn=job.turn,
            attempt=job.attempt,
            call=job.call,
            message=result(job.call, text),
            outcome=outcome,
            took_s=outside.time() - began,
        )


class DelegatingDaemon(SimulatedDaemon):
    settings: DelegationSettings
    slow_until: dict[SessionId, float]

    def _minds(self, system: ActorSystem) -> Minds:
        minds = DelegatingMinds(self._outside, system.ports.hub, system.processes)
        minds.system, minds.slow_until = system, self.slow_until
        return minds

    def _prepare(self, system: ActorSystem) -> None:
        async def offered(_platform: str, _role: Role, only: tuple[str, ...] | None) -> Mapping[str, str]:
            return {name: OFFERED[name] for name in OFFERED if only is None or name in only}

        async def share(_parent: SessionId, _child: SessionId) -> None:
            await asyncio.sleep(self._outside.disk.delay_s())

        for purpose, methods in ((Purpose.DELEGATE, DelegationPurpose), (Purpose.BACKGROUND, BackgroundPurpose)):
            subagents = methods(
                sessions=system.sessions,
                heads=system.sessions.heads,
                hub=system.ports.hub,
                clock=self._outside.wall,
                settings=lambda: self.settings,
                offered=offered,
                share=share,
            )
            system.child_sessions.register(purpose, subagents)

    @property
    def is_hindered(self) -> bool:
        return not self.open or self.holds or self._stop.done() or bool(self.children.parked) or self._is_hindered()


class FamilySweeps(Sweeps):
    def unfinished(self) -> list[Session]:
        """Leave out branches that ended as unused just before another branch of them was used again."""
        disk = self._outside.disk
        rows = {row.id: row for row in disk.sessions()}
        return [
            row
            for row in super().unfinished()
            if all(rows[each].phase is Phase.ENDED for each in find_family(disk, row.id) if each in rows)
        ]


class DelegationSimulation(Simulation):
    max_actors = 60  # children end with their work, and their actors a while after

    def __init__(self, seed: int, disk: type[Disk] = Disk) -> None:
        super().__init__(seed, disk)
        chance = self.outside.chance
        self.sweeps = FamilySweeps(self.outside, self.town)
        self.settings = DelegationSettings(
            max_concurrent_children=chance.choice((1, 3, 3)),
            max_spawn_depth=chance.choice((1, 1, 2)),
            asks=chance.random() < 0.5,
            detach=chance.random() < 0.3,
        )
        self.ledger = DelegationLedger(self.outside.disk, self.settings, self.outside.time)
        self._slow_until: dict[SessionId, float] = {}
        self._alone_since: dict[str, float] = {}  # children that nobody waits for
        self._complained: set[str] = set()

    def make_daemon(self) -> SimulatedDaemon:
        daemon = DelegatingDaemon(self.outside, self.resets, self.platform, self.machine, self._on_stopped)
        daemon.settings, daemon.slow_until = self.settings, self._slow_until
        return daemon

    def run(self) -> None:
        self.outside.later(LOOK_S, self._look)
        self.outside.later(self.outside.chance.uniform(0, 5), self._meddle)
        super().run()

    # ------------------------------------------------------------ people and subagents

    def _meddle(self) -> None:
        """Start work beside a conversation; stop, steer or answer a subagent."""
        outside, chance = self.outside, self.outside.chance
        if not outside.faulty:
            return
        rows = outside.disk.sessions()
        children = [row for row in rows if row.assignment is not None and row.phase is not Phase.ENDED]
        others = [row for row in rows if row.assignment is None]
        if children and chance.random() < 0.7:
            work: Callable[..., Any] = chance.choice((_stop, _steer, _answer, _answer))
            self.town.ask(partial(work, chance.choice(children).id, outside.number("meddled")), _nothing)
        elif others:
            self.town.ask(partial(_begin, chance.choice(others).id, outside.number("beside")), _nothing)
        outside.later(chance.choice(PAUSES_S) * chance.random(), self._meddle)

    def _look(self) -> None:
        """Look for children that work on though nobody waits for them."""
        outside = self.outside
        daemon = self.daemon
        if not isinstance(daemon, DelegatingDaemon) or daemon.is_hindered or outside.now < outside.frozen_until:
            self._alone_since.clear()
        else:
            since = {key: self._alone_since.get(key, outside.now) for key in self.ledger.orphans()}
            self._alone_since = since
            for key in [key for key, then in since.items() if outside.now - then > ORPHAN_S]:
                if key not in self._complained:
                    self._complained.add(key)
                    outside.complain(f"nobody waits for {self.ledger.children[key].child} of {key}, which works on")
        if not self._last_stop:
            outside.later(LOOK_S, self._look)

    # ------------------------------------------------------------ the end

    def _unsaid(self) -> bool:
        return super()._unsaid() or bool(self.outside.disk.facts(PREFIX))

    def _help(self) -> None:
        super()._help()
        if self.daemon is not None and self.daemon.holds:
            self.town.ask(_end_boot_loop, _nothing)

    def _may_rest(self, row: Session) -> bool:
        """Sessions that wait for subagents may be quiet, and those whose model thinks."""
        if self.outside.now < self._slow_until.get(row.id, 0.0) + LOOK_S:
            return True
        open_ones: set[str] = {each.child for key, each in self.ledger.children.items() if self.ledger.is_open(key)}
        calls = row.turn.calls if row.turn is not None else ()
        children: set[str] = {child for call in calls for child in call.children}
        ended = max((self.ledger.ended_at.get(child, 0.0) for child in children), default=0.0)
        return bool(open_ones & children) or self.outside.now - ended < LIMBO_S


async def _begin(session: SessionId, task: str, daemon: SimulatedDaemon, _: Request) -> Session:
    wish = StartBackground(turn=TurnId(task), task=task, source=API)
    return await daemon.system.delegations.begin(session, wish)


async def _stop(child: SessionId, _said: str, daemon: SimulatedDaemon, _: Request) -> None:
    for duty in daemon.system.child_sessions.duties:
        if duty.child == child:
            await daemon.system.child_sessions.end(duty, "a user stopped it")


async def _steer(child: SessionId, said: str, daemon: SimulatedDaemon, _: Request) -> object:
    turn = TurnId(f"turn-{said}")
    return await daemon.desk.submit(
        Submission(turn=turn, messages=(user(said),), source=API, session=child, busy=Busy.STEER)
    )


async def _answer(child: SessionId, said: str, daemon: SimulatedDaemon, _: Request) -> Session:
    return await daemon.desk.answer(child, "once" if len(said) % 2 else "deny", API)


async def _end_boot_loop(daemon: SimulatedDaemon, _: Request) -> None:
    """As the real daemon does after a while."""
    daemon.holds = False
    daemon.system.hold(boot_loop=False)


def _nothing(*_: object) -> None:
    """Whatever came of it shows on disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationVerdict:
    seed: int
    violations: tuple[str, ...]
    trace: tuple[str, ...]
    children: int
    results: int


def run_delegations(seed: int) -> DelegationVerdict:
    logger.disable("hermes")
    simulation = DelegationSimulation(seed)
    try:
        simulation.run()
        found = [*map(str, judge(simulation.outside.history)), *simulation.ledger.violations()]
    finally:
        logger.enable("hermes")
    return DelegationVerdict(
        seed=seed,
        violations=tuple(found),
        trace=tuple(simulation.outside.trace),
        children=len(simulation.ledger.children),
        results=simulation.ledger.results,
    )


def brief_delegations(seed: int) -> tuple[int, int, int, list[str]]:
    verdict = run_delegations(seed)
    return seed, verdict.children, verdict.results, list(verdict.violations)
