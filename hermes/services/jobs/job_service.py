"""Job service: creates, changes, lists and runs scheduled jobs, the same for every surface.

A change is decided on the stored job and stored with its version. If another writer was first, it is decided again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any, Final

from loguru import logger

from hermes.actors.commit import store
from hermes.domain.child.child import ChildDuty
from hermes.domain.errors import AlreadySeenError, BadInputError, SequenceConflictError, UnknownJobError
from hermes.domain.ids import SessionId, SessionKey
from hermes.domain.job.claim import claim, put
from hermes.domain.job.job import LOCAL, ORIGIN, ApprovalPolicy, Job, JobRun, JobRunState
from hermes.domain.job.job_fields import FieldTerms, with_fields
from hermes.domain.job.occurrence import request_id, requested, rescheduled
from hermes.domain.job.schedule import Schedule, ScheduleKind
from hermes.domain.job.shown_job import shown_job, shown_run
from hermes.domain.operations import DropJob, Operation
from hermes.domain.read.reader import Reader
from hermes.domain.session.state import Session
from hermes.domain.source import Source
from hermes.domain.text.title import clean_title
from hermes.domain.values import replace
from hermes.ports.channels import Channels
from hermes.ports.given import Clock
from hermes.ports.job.jobs import JobCaller, Jobs, JobSettings
from hermes.ports.metrics import JobFigures
from hermes.ports.storage import Journal

MAX_OWN: Final = 50  # jobs of a person who is not the owner or an admin
_PAGE: Final = 500
_NO_SCHEDULE: Final = Schedule(kind=ScheduleKind.ONCE, text="")
_REWORK: Final = frozenset({"schedule", "zone", "repeat"})  # fields that change the next occurrence
Change = Callable[[Job], Job]


class JobService(Jobs):
    def __init__(
        self,
        *,
        journal: Journal,
        clock: Clock,
        settings: JobSettings,
        channels: Channels,
        head: Callable[[SessionId], Any],  # awaitable Session | None
        tool_problem: Callable[[str], str] = lambda _: "",
        new_operation: Callable[[], str],
        look: Callable[[], None],  # tells the scheduler that jobs have changed
        start_runs: Callable[[Sequence[ChildDuty]], None],
    ) -> None:
        self._journal = journal
        self._clock = clock
        self.settings = settings
        self._channels = channels
        self._head = head
        self._tool_problem = tool_problem
        self._new_operation = new_operation
        self._look = look
        self._start_runs = start_runs
        self._ended: Counter[JobRunState] = Counter()

    def note(self, state: JobRunState) -> None:
        self._ended[state] += 1

    async def figures(self) -> JobFigures:
        stored, due = await self._journal.fetch(lambda reader: (reader.job_count(), reader.next_job_due()))
        return JobFigures(stored=stored, next_due=due, ended=dict(self._ended))

    # ------------------------------------------------------------ one job

    async def create(self, fields: Mapping[str, Any], caller: JobCaller) -> Job:
        now = self._clock()
        operation = caller.operation or self._new_operation()
        name = blake2b(operation.encode(), digest_size=6).hexdigest()
        origin: Session | None = await self._head(caller.session) if caller.session is not None else None
        place = caller.source.place or (None if origin is None else origin.place)
        source = caller.source
        job = Job(
            id=name,
            name="",
            schedule=_NO_SCHEDULE,
            source=Source(
                platform=source.platform,
                user=source.user,
                role=source.standing,
                name=source.name,
                place=None if place is None else replace(place, message=""),
            ),
            deliver=(ORIGIN if place is not None else LOCAL,),
            jitter_s=self.settings.jitter_s,
            retries=self.settings.retries,
            approvals=ApprovalPolicy(self.settings.approvals),
            origin_key=SessionKey("") if origin is None else origin.key,
            created_at=now,
        )
        wanted = {key: value for key, value in fields.items() if value is not None}
        if "schedule" not in wanted:
            raise BadInputError("the job needs a schedule", param="schedule", code="bad_schedule")
        await self._find_zone(wanted.get("zone", ""))
        wanted = await self._with_ids(wanted, caller)
        given = with_fields(job, wanted, self._terms(caller))
        await self._check(given)
        await self._check_number(caller)
        zone = self.settings.zone_of(given)
        given = rescheduled(replace(given, name=given.name or _name_of(given)), now, zone, self.settings.terms)
        try:
            await store(self._journal, (put(given, job, self.settings.terms),))
        except SequenceConflictError:  # the same request again
            return await self.find(name, caller)
        logger.info("job {}: created by {}, {}", name, source.by, given.schedule.text)
        self._look()
        return replace(given, version=1)

    async def _find_zone(self, name: Any) -> None:
        """Find a time zone in a thread, since that reads files. Raises BadInputError."""
        await asyncio.to_thread(self.settings.find_zone, str(name))

    def _terms(self, caller: JobCaller) -> FieldTerms:
        return FieldTerms(
            now=self._clock(),
            find_zone=self.settings.find_zone,
            times=self.settings.terms.times,
            approves=caller.source.standing.approves,
        )

    async def _with_ids(self, wanted: dict[str, Any], caller: JobCaller) -> dict[str, Any]:
        """Replace the jobs whose outputs are wanted, by id or name, by their ids: names change."""
        names = wanted.get("context_from")
        if not isinstance(names, str | list) or not all(isinstance(name, str) for name in names):
            return wanted  # none, or refused below
        listed = names.split(",") if isinstance(names, str) else names
        found = [(await self.find(name, caller)).id for name in listed if name.strip()]
        return {**wanted, "context_from": found}

    async def _check(self, job: Job) -> None:
        if ORIGIN in job.deliver and job.source.place is None:
            raise BadInputError(
                "the job was not created in a chat: it has no origin", param="deliver", code="bad_target"
            )
        await self._channels.places(job.deliver, job.source.place)  # raises BadInputError
        for name in job.tools:
            if problem := self._tool_problem(name):
                raise BadInputError(problem, param="tools", code="bad_job")

    async def _check_number(self, caller: JobCaller) -> None:
        if not caller.source.standing.approves and len(await self.listed(caller, limit=MAX_OWN)) >= MAX_OWN:
            raise BadInputError(f"you have {MAX_OWN} jobs already: remove one first", code="too_many_jobs")

    async def find(self, name: str, caller: JobCaller) -> Job:
        found = await self._journal.fetch(lambda reader: _matching(reader, name.strip(), caller.source))
        if not found:
            raise UnknownJobError(f"there is no job {name[:80]!r}; `hermes cron list` shows them", param="job")
        if len(found) > 1:
            ids = ", ".join(job.id for job in found[:5])
            raise BadInputError(f"{name[:80]!r} means several jobs: {ids}", param="job", code="ambiguous_job")
        return found[0]

    async def edit(self, name: str, fields: Mapping[str, Any], caller: JobCaller) -> Job:
        wanted = {key: value for key, value in fields.items() if value is not None}
        if not wanted:
            raise BadInputError("nothing to change was given", code="bad_job")

        def change(job: Job) -> Job:
            terms = self._terms(caller)
            changed = with_fields(job, wanted, terms)
            if not _REWORK & wanted.keys():
                return changed
            fresh = replace(changed, taken=0, ended_at=None, retry_at=None, attempt=0)
            return rescheduled(fresh, terms.now, self.settings.zone_of(changed), self.settings.terms)

        job = await self.find(name, caller)
        wanted = await self._with_ids(wanted, caller)
        await self._find_zone(wanted.get("zone", job.zone))
        await self._check(with_fields(job, wanted, self._terms(caller)))
        return await self._change(job, change, "changed", caller)

    async def pause(self, name: str, caller: JobCaller) -> Job:
        job = await self.find(name, caller)
        return await self._change(job, lambda job: replace(_not_ended(job), paused=True), "paused", caller)

    async def resume(self, name: str, caller: JobCaller) -> Job:
        """Resume a job. What was due while it was paused is not made up for."""

        def change(job: Job) -> Job:
            return rescheduled(
                replace(_not_ended(job), paused=False), self._clock(), self.settings.zone_of(job), self.settings.terms
            )

        job = await self.find(name, caller)
        await self._find_zone(job.zone)
        return await self._change(job, change, "resumed", caller)

    async def remove(self, name: str, caller: JobCaller) -> Job:
        job = await self.find(name, caller)
        await store(self._journal, (DropJob(id=job.id),))
        logger.info("job {}: removed by {}", job.id, caller.source.by)
        self._look()
        return job

    async def run(self, name: str, caller: JobCaller) -> JobRun:
        """Start a run now, once for each operation of the caller. Refused while a run of the job is not done."""
        operation = caller.operation or self._new_operation()
        while True:
            job = await self.find(name, caller)
            if caller.operation and (before := await self._requested(job, operation)) is not None:
                return before
            if job.running:
                raise BadInputError(f"run {job.running} of job {job.id} is not done yet", code="job_running")
            now = self._clock()
            taken = requested(job, operation, now)
            operations, duty = claim(job, taken, now, self.settings.terms, self.settings.keep_runs)
            assert taken.start is not None
            assert duty is not None
            try:
                await store(self._journal, operations)
            except SequenceConflictError:
                continue
            except AlreadySeenError:  # it ran, and is not kept any more
                return taken.start
            logger.info("job {}: run {} begins, requested by {}", job.id, taken.start.number, caller.source.by)
            self._start_runs((duty,))
            return replace(taken.start, session="" if job.no_agent else duty.child)

    async def _requested(self, job: Job, operation: str) -> JobRun | None:
        """Return the run that was started by this operation."""
        runs = await self._journal.fetch(lambda reader: reader.job_runs(job.id, self.settings.keep_runs))
        return next((run for run in runs if run.occurrence == request_id(job, operation)), None)

    async def _change(self, job: Job, change: Change, what: str, caller: JobCaller) -> Job:
        while True:
            changed = change(job)
            operations: tuple[Operation, ...] = (put(changed, job, self.settings.terms),)
            try:
                await store(self._journal, operations)
            except SequenceConflictError:
                job = await self.find(job.id, caller)
                continue
            logger.info("job {}: {} by {}", job.id, what, caller.source.by)
            self._look()
            return replace(changed, version=job.version + 1)

    # ------------------------------------------------------------ lists

    async def listed(self, caller: JobCaller, *, limit: int = 200, after: str = "") -> list[Job]:
        return await self._journal.fetch(lambda reader: list(islice(_own(reader, caller.source, after), limit)))

    async def history(self, name: str, caller: JobCaller, *, limit: int = 20) -> list[JobRun]:
        job = await self.find(name, caller)
        return await self._journal.fetch(lambda reader: reader.job_runs(job.id, limit))

    def shown(self, job: Job) -> dict[str, Any]:
        return shown_job(job)

    def shown_run(self, run: JobRun) -> dict[str, Any]:
        return shown_run(run)


def _own(reader: Reader, source: Source, after: str = "") -> Any:
    """Yield the jobs that a person may see, by id."""
    while page := reader.jobs(_PAGE, after):
        yield from (job for job in page if may_see(job, source))
        if len(page) < _PAGE:
            return
        after = page[-1].id


def may_see(job: Job, source: Source) -> bool:
    own = (job.source.platform, job.source.user) == (source.platform, source.user)
    return source.standing.approves or (own and bool(source.user))


def _matching(reader: Reader, name: str, source: Source) -> list[Job]:
    """Return the job with this id, else those whose id begins so, else those with this name."""
    if not name:
        return []
    key = name.lower()
    if len(key) <= 12 and key.isalnum() and key.isascii():
        exact = reader.job(key)
        if exact is not None and may_see(exact, source):
            return [exact]
    wanted = name.casefold()
    jobs = list(_own(reader, source))
    named = [job for job in jobs if job.name.casefold() == wanted]
    return named or ([job for job in jobs if job.id.startswith(key)] if len(key) >= 4 else [])


def _name_of(job: Job) -> str:
    words = " ".join((job.prompt or job.script).split())[:40]
    return clean_title(words)


def _not_ended(job: Job) -> Job:
    if job.ended_at is None:
        return job
    remedy = "`run` starts it once more, and a new schedule (`edit`) continues it"
    raise BadInputError(f"job {job.id} has ended: its schedule has no further occurrence; {remedy}", code="job_ended")
