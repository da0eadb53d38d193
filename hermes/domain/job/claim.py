"""Claim of an occurrence: the transaction that takes it exactly once, and the duty to run it. Pure."""

from __future__ import annotations

from hermes.domain.child.child import ChildDuty, Purpose, child_id
from hermes.domain.ids import InboundKey, SessionId
from hermes.domain.job.job import Job, JobRun
from hermes.domain.job.occurrence import JobTerms, Taken, due_time
from hermes.domain.operations import DropJob, Operation, PutFact, PutJob, PutJobRun, See
from hermes.domain.source import Source
from hermes.domain.turn.submission import Seen
from hermes.domain.values import replace


def claim(
    before: Job, taken: Taken, now: float, terms: JobTerms, keep: int
) -> tuple[tuple[Operation, ...], ChildDuty | None]:
    """Return the transaction of a decision, and the duty that it stores.

    The transaction is refused with AlreadySeenError if the occurrence was taken before.
    """
    if taken.job is None:
        return (DropJob(id=before.id),), None
    duty = None if taken.start is None else _duty(taken.job, taken.start, now)
    operations: list[Operation] = [put(taken.job, before, terms)]
    for run in taken.runs:
        is_agents = duty is not None and run is taken.start and not before.no_agent
        operations.append(PutJobRun(run=replace(run, session=duty.child) if is_agents and duty else run, keep=keep))
    if duty is not None and taken.start is not None:
        key = InboundKey(f"job:{taken.start.occurrence}")
        seen = Seen(key=key, session=duty.child, turn=duty.first_turn, fingerprint=b"", at=now)
        operations += [See(seen=seen), PutFact(name=duty.fact, value=duty.encoded())]
    return tuple(operations), duty


def put(job: Job, before: Job, terms: JobTerms) -> PutJob:
    """Return the operation that replaces a job by its changed form."""
    changed = replace(job, version=before.version + 1)
    return PutJob(job=changed, due=due_time(changed, terms))


def _duty(job: Job, run: JobRun, now: float) -> ChildDuty:
    key = f"{Purpose.JOB}:{run.occurrence}"
    source = job.source
    return ChildDuty(
        key=key,
        child=SessionId(child_id(key, now)),
        purpose=Purpose.JOB,
        source=Source(platform=source.platform, user=source.user, automatic=True, role=source.role, name=source.name),
        topics=(job.id, str(run.number)),
    )
