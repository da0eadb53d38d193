"""Scheduled jobs in the simulation: jobs of every kind, changes of the clock, faults, and what must be on disk after.

The actors, the scheduler, the runs and the delivery are the real ones. Scripts and models are played.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Any, Final
from zoneinfo import ZoneInfo

from loguru import logger

from hermes.app.actor_system import ActorSystem
from hermes.domain.access.role import Role
from hermes.domain.child.child import PREFIX, Purpose
from hermes.domain.job.job import Job, JobRun, JobRunState, MissedPolicy, RunProblem
from hermes.domain.job.occurrence import JobTerms
from hermes.domain.job.schedule import ScheduleKind, next_after
from hermes.domain.source import Source
from hermes.domain.values import dataclass
from hermes.ports.job.jobs import JobCaller, JobSettings
from hermes.services.jobs.job_delivery import PREFIX as MIRROR
from hermes.services.jobs.job_purpose import JobPurpose
from hermes.system.cron_times import CronsimTimes
from tests.simulation.daemon import SimulatedDaemon
from tests.simulation.disk import Disk
from tests.simulation.outside import START
from tests.simulation.request import Request
from tests.simulation.run import LOOK_EVERY_S, Accidents, Simulation

ZONE: Final = ZoneInfo("Europe/Berlin")
TIMES: Final = CronsimTimes()
DAYS: Final = ("2027-03-28T01:58:30", "2027-10-31T01:58:30", "2027-10-31T02:58:30", "2027-06-01T07:58:30")
SCHEDULES: Final = ("every 10s", "every 25s", "every 1m", "5s", "40s", "* * * * *", "*/2 * * * *", "30 2 * * *")
FIXED: Final = ("0 2 * * *", "0 3 * * *", "59 1 * * *", "0 8 * * *", "@hourly")
OWNER: Final = Source(platform="cli", role=Role.OWNER)
SETTLED_S: Final = 60.0  # in which runs end once their jobs are paused
_LOCAL: Final = ("local", "toy:10000", "toy:chat1")


class ScheduledDaemon(SimulatedDaemon):
    scripts: Counter[str]

    def _prepare(self, system: ActorSystem) -> None:
        outside, service = self._outside, system.jobs.service
        service.settings = JobSettings(
            terms=JobTerms(zone=ZONE, times=TIMES, keep_ended_s=1e6, retry_delay_s=5.0),
            find_zone=lambda name: ZoneInfo(name) if name else ZONE,
            keep_runs=1000,
        )

        async def run_script(job: Job, session: str) -> tuple[int, str]:
            self.scripts[session] += 1
            await asyncio.sleep(outside.chance.uniform(0.01, 3.0))
            outside.moment("after an effect")
            return int(outside.happens(0.1)), outside.number("fact")

        async def available(_platform: str, _role: Role) -> tuple[str, ...]:
            return ("read", "write")

        purpose = JobPurpose(
            journal=self.journal,
            clock=outside.wall,
            settings=lambda: service.settings,
            delivery=system.jobs.delivery,
            available=available,
            tools_of=lambda name: (name,),
            skill_text=available,  # type: ignore[arg-type]  # no job has skills
            run_script=run_script,
            prepare_folder=lambda _session, _directory: None,
            new_marker=lambda: "marker",
            look=system.jobs.look,
            at_once=outside.chance.choice((1, 3, 100)),
        )
        system.child_sessions.register(Purpose.JOB, purpose)


class ScheduleSimulation(Simulation):
    def __init__(self, seed: int) -> None:
        super().__init__(seed, Disk)
        outside = self.outside
        self.scripts: Counter[str] = Counter()
        begins = datetime.fromisoformat(outside.chance.choice(DAYS)).replace(tzinfo=ZONE)
        outside.set_by = begins.timestamp() - START
        self.chatters = []
        self._jobs = outside.chance.randint(1, 6)
        self._set_back = False

    def make_daemon(self) -> SimulatedDaemon:
        daemon = ScheduledDaemon(self.outside, self.resets, self.platform, self.machine, self._on_stopped)
        daemon.scripts = self.scripts
        return daemon

    def run(self) -> None:
        outside = self.outside
        self.start()
        for number in range(self._jobs):
            fields = self._fields()
            outside.later(outside.chance.uniform(0, 30), self._ask, partial(_create, f"job-{number}", fields))
        Accidents(self).begin()
        outside.run_until(outside.chance.uniform(120, 300))
        self._calm_down()
        self._settle()
        self._stop_for_good()

    def _fields(self) -> dict[str, Any]:
        chance = self.outside.chance
        deliver = chance.sample(_LOCAL, chance.randint(1, 2))
        fields: dict[str, Any] = {
            "schedule": chance.choice(SCHEDULES + FIXED),
            "prompt": "work",
            "deliver": deliver,
            "missed": chance.choice(tuple(MissedPolicy)),
            "retries": chance.choice((0, 0, 2)),
            "jitter_s": chance.choice((0.0, 0.0, 5.0)),
        }
        if chance.random() < 0.5:
            fields |= {"script": "a.sh", "no_agent": chance.random() < 0.5}
        return fields

    def _ask(self, work: Any) -> None:
        """Ask until it is done."""

        def on(request: Request, what: str, _value: Any) -> None:
            if request.over and what != "done":
                self.outside.later(1.0, self._ask, work)

        self.town.ask(work, on)

    def _settle(self) -> None:
        """Pause all jobs, and wait until their runs have ended and their reports are noted."""
        outside = self.outside
        outside.run_until(outside.now + 20)
        for job in outside.disk.jobs(100):
            self._ask(partial(_pause, job.id))
        deadline = outside.now + SETTLED_S * 10
        while outside.now < deadline and (self.town.waiting or self._left()):
            outside.run_until(outside.now + LOOK_EVERY_S)
            if self.daemon is not None and self.daemon.open:
                if self.daemon.holds:
                    self._ask(_end_boot_loop)
                self._help()

    def _left(self) -> list[str]:
        disk = self.outside.disk
        waiting = [run.occurrence for run in _runs(disk) if not run.state.ended]
        return [*waiting, *disk.facts(PREFIX), *disk.facts(MIRROR), *(each.id for each in disk.outbox())]

    # ------------------------------------------------------------ what must be true

    def violations(self) -> Iterator[str]:
        disk = self.outside.disk
        yield from (f"still open: {each}" for each in self._left())
        runs = _runs(disk)
        yield from (f"{name} came {count} times" for name, count in _repeated(run.occurrence for run in runs))
        sessions = Counter(
            session.assignment.key
            for session in disk.sessions()
            if session.assignment is not None and session.assignment.purpose is Purpose.JOB and session.parent is None
        )
        known = {f"job:{run.occurrence}": run for run in runs}
        for key, count in sessions.items():
            if count != 1 or key not in known:
                yield f"{count} sessions for {key}"
        for run in runs:
            yield from self._run_violations(run, sessions)
        for job in disk.jobs(100):
            yield from self._gaps(job)
        sent = Counter(name for name in disk._sent if name.startswith("job:"))
        reported = Counter(name for run in runs for name in run.delivered)
        if sent != reported:
            yield f"reports {reported - sent} were not sent, {sent - reported} were sent without a run"

    def _run_violations(self, run: JobRun, sessions: Counter[str]) -> Iterator[str]:
        executed = self.scripts[run.session] if run.session else 0
        if executed > 1:
            yield f"the script of {run.occurrence} ran {executed} times"
        if run.state is JobRunState.FAILED and run.problem is RunProblem.NONE:
            yield f"{run.occurrence} failed without a reason"
        if run.state is JobRunState.DONE and run.session and not sessions[f"job:{run.occurrence}"]:
            yield f"{run.occurrence} is done without its session"

    def _gaps(self, job: Job) -> Iterator[str]:
        """Check that each occurrence since the creation has one row, as far as the clock was not set back."""
        if self.outside_was_set_back or job.schedule.kind is ScheduleKind.ONCE:
            return
        rows = [run for run in self.outside.disk.job_runs(job.id, 1000) if run.cause != "retry"]
        at = next_after(job.schedule, job.created_at, ZONE, TIMES)
        while at is not None and at <= job.last_at:
            found = [run for run in rows if run.at <= at <= max(run.at, run.until)]
            if len(found) != 1:
                yield f"{job.schedule.text}: {datetime.fromtimestamp(at, ZONE)} has {len(found)} rows"
                return
            at = next_after(job.schedule, at, ZONE, TIMES)

    @property
    def outside_was_set_back(self) -> bool:
        return any("set_clock back" in line for line in self.outside.trace)


def _runs(disk: Disk) -> list[JobRun]:
    return [run for job in disk.jobs(100) for run in disk.job_runs(job.id, 1000)]


def _repeated(names: Iterator[str]) -> Iterator[tuple[str, int]]:
    return ((name, count) for name, count in Counter(names).items() if count > 1)


async def _create(name: str, fields: dict[str, Any], daemon: SimulatedDaemon, _: Request) -> None:
    await daemon.system.jobs.service.create(fields, JobCaller(source=OWNER, operation=name))


async def _pause(job: str, daemon: SimulatedDaemon, _: Request) -> None:
    await daemon.system.jobs.service.pause(job, JobCaller(source=OWNER))


async def _end_boot_loop(daemon: SimulatedDaemon, _: Request) -> None:
    """As the real daemon does after a while."""
    daemon.holds = False
    daemon.system.hold(boot_loop=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleVerdict:
    seed: int
    violations: tuple[str, ...]
    trace: tuple[str, ...]
    runs: int


def run_schedules(seed: int) -> ScheduleVerdict:
    logger.disable("hermes")
    simulation = ScheduleSimulation(seed)
    try:
        simulation.run()
        found = tuple(simulation.violations())
    finally:
        logger.enable("hermes")
    outside = simulation.outside
    return ScheduleVerdict(seed=seed, violations=found, trace=tuple(outside.trace), runs=len(_runs(outside.disk)))


def brief_schedules(seed: int) -> tuple[int, int, list[str]]:
    verdict = run_schedules(seed)
    return seed, verdict.runs, list(verdict.violations)
