"""What the disk of a simulated machine says in the end, as the judge reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from hermes.actors.session_machine import SUSPEND_AFTER
from hermes.actors.session_state import replay
from hermes.records import Ended, LogEntry, MessageReceived, Suspended, TurnFailed, TurnFinished, TurnInterrupted
from hermes.records import Merged as MergedRecord
from hermes.types import Session
from tests.history import Accepted, Happening, Looked, Merged, Owed, Retried, Sample, Settled, Stored, Told
from tests.simulation.disk import Disk
from tests.simulation.minds import heard, transcript_of


def survey(disk: Disk) -> Iterator[Happening]:
    for row in disk.sessions():
        yield from survey_session(disk, row)
    yield from _owed(disk)


def survey_session(disk: Disk, row: Session) -> Iterator[Happening]:
    entries = disk.log(row.id)
    yield Stored(row=row, fold=replay(row.id, entries))
    yield Looked(session=row.id, inbounds=heard(transcript_of(disk, row.id).messages))
    yield Sample(what=f"interruptions in a row of {row.id}", value=_in_a_row(entries), limit=SUSPEND_AFTER)
    for entry in entries:
        match entry.record:
            case MessageReceived() as received:
                yield from _received(received, row)
            case MergedRecord() as merged:
                yield Merged(turn=merged.turn, into=merged.into)
            case TurnFinished() as finished:
                yield Settled(turn=finished.turn, text=json.loads(finished.message)["content"])
            case TurnFailed() as failed:
                yield Settled(turn=failed.turn, failure=failed.failure.kind)
            case _:
                pass


def _in_a_row(entries: Iterable[LogEntry]) -> int:
    """The most interruptions without a finished turn in between, or anything else that makes them count anew."""
    most = now = 0
    for entry in entries:
        if isinstance(entry.record, TurnInterrupted):
            now += 1
        elif isinstance(entry.record, TurnFinished | Suspended | Ended):
            now = 0
        most = max(most, now)
    return most


def _received(received: MessageReceived, row: Session) -> Iterator[Happening]:
    if received.source.automatic:
        _, process, _ = str(received.inbound).split(":")
        yield Told(process=process)
    for inbound in heard(received.messages):
        if received.inbound is None:
            yield Retried(inbound=inbound, turn=received.turn)
        else:
            yield Accepted(inbound=inbound, turn=received.turn, session=row.id)


def _owed(disk: Disk) -> Iterator[Happening]:
    records = [entry.record for row in disk.sessions() for entry in disk.log(row.id)]
    chats = {
        each.turn: each.source.place.chat
        for each in records
        if isinstance(each, MessageReceived) and each.source.place is not None
    }
    for record in records:
        if isinstance(record, TurnFinished) and record.turn in chats:
            yield Owed(to=chats[record.turn], turn=record.turn)
