"""Transaction of a step: its records and everything that is stored with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from hermes.domain.access.grants import facts_of, granted_by
from hermes.domain.child.duty import duties_of
from hermes.domain.history.history_key import located_by
from hermes.domain.ids import Epoch, Seq
from hermes.domain.operations import Append, Enqueue, Operation, PutFact, Restore, See, SetDue
from hermes.domain.outbox import outgoing_of
from hermes.domain.session.protocol import Step, SuccessorSession
from hermes.domain.session.state import Session, is_pending
from hermes.domain.turn.tally import tallies_of
from hermes.domain.values import replace

Due: TypeAlias = Callable[[Session, float], float | None]  # takes the time; returns when to check for a reset


def never_due(session: Session, now: float) -> float | None:  # noqa: ARG001 - the signature of Due
    """Return None: no reset policy applies."""
    return None


def complete(before: Session, step: Step, now: float, due: Due) -> Step:
    """Add to a step what follows from its records: outbox messages, usage, grants and due time."""
    child = step.child
    if not step.records and child is None:
        return step
    usage = list(tallies_of(step.session, step.records, before.turn))
    if child is not None:
        usage += tallies_of(child.session, child.records)
        child = replace(child, due=due(child.session, now))
    return replace(
        step,
        outbox=outgoing_of(before, step.records),
        usage=usage,
        granted=granted_by(before, step.records),
        located=(*step.located, *located_by(before, step.records, step.session, now)),
        due=due(step.session, now),
        child=child,
        children=duties_of(before, step.records),
    )


def operations_of(step: Step, epoch: Epoch) -> list[Operation]:
    """Return the step as operations of one transaction."""
    session, child = step.session, step.child
    operations: list[Operation] = []
    if step.records:
        append = Append(
            session=session.id,
            expected_seq=Seq(session.next_seq - len(step.records)),
            epoch=epoch,
            records=step.records,
            head=session,
            pending=is_pending(session),
            bind=step.bind,
            seen=step.seen,
            due=step.due,
        )
        operations.append(append)
        if step.seen is not None:
            operations += [See(seen=replace(step.seen, key=key)) for key in step.also]
        operations += [See(seen=seen) for seen in step.once]
        operations += [See(seen=seen, latest=True) for seen in step.located]
    elif child is not None:  # fails the transaction if this session was deleted or has changed
        operations.append(SetDue(session=session.id, expected_seq=session.next_seq, due=step.due))
    if child is not None:
        operations.append(_first_append(child, epoch))
    operations += step.usage
    operations += facts_of(step.granted)
    operations += [PutFact(name=duty.fact, value=duty.encoded()) for duty in step.children]
    operations += [Enqueue(outgoing=message) for message in step.outbox if message.final]
    return operations


def _first_append(child: SuccessorSession, epoch: Epoch) -> Append:
    return Append(
        session=child.session.id,
        expected_seq=Seq(0),
        epoch=epoch,
        records=child.records,
        head=child.session,
        pending=is_pending(child.session),
        bind=child.session.key if child.move_key else None,
        due=child.due,
    )


def restorations(damaged: Sequence[Session], epoch: Epoch, now: float, due: Due) -> tuple[Restore, ...]:
    """Return the operations that store rows that were rebuilt from their logs."""
    return tuple(Restore(head=head, epoch=epoch, pending=is_pending(head), due=due(head, now)) for head in damaged)
