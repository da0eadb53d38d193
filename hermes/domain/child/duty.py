"""Duties to start child sessions, as they follow from the records of a step. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.domain.child.child import ChildDuty
from hermes.domain.records import ChildStarted, Record
from hermes.domain.session.state import Session
from hermes.domain.source import Source


def duties_of(before: Session, records: Sequence[Record]) -> tuple[ChildDuty, ...]:
    return tuple(_duty(before, record) for record in records if isinstance(record, ChildStarted))


def _duty(parent: Session, record: ChildStarted) -> ChildDuty:
    platform, _, user = record.by.partition(":")
    return ChildDuty(
        key=record.key,
        child=record.child,
        purpose=record.purpose,
        parent=parent.id,
        turn=record.turn,
        topics=record.topics,
        call=record.call,
        number=record.number,
        task=record.task,
        source=Source(
            platform=platform or parent.platform,
            user=user,
            automatic=True,
            role=record.role,
            name=record.name,
        ),
    )
