"""What the store of a daemon that has ended says in the end, as happenings for the judge."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from hermes.domain.read.transcript import Transcript
from hermes.domain.records import BadRecord, LogEntry, MessageReceived, TurnFailed, TurnFinished
from hermes.domain.records import Merged as MergedRecord
from hermes.domain.session.fold.state_fold import replay
from hermes.domain.session.state import Session
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.storage.verify import verify
from tests.support.judge import Accepted, Complaint, Happening, Looked, Merged, Open, Settled, Stored


def survey(home: Path) -> Iterator[Happening]:
    yield from (Complaint(problem=problem) for problem in verify(home / "store"))
    engine = LmdbEngine.open(home / "store", map_size_bytes=1 << 30)
    try:
        for outgoing in engine.outbox():
            yield Complaint(problem=f"{outgoing.id} is still owed: {outgoing.problem or 'nobody has tried'}")
        for session in engine.recent(10_000):
            yield from _session(session, engine.log(session.id))
    finally:
        engine.close()


def _session(row: Session, entries: list[LogEntry]) -> Iterator[Happening]:
    yield Stored(row=row, fold=replay(row.id, entries))
    yield Looked(session=row.id, inbounds=_heard(entries))
    if row.turn is not None or row.queue:
        yield Open(session=row.id, phase=row.phase, quiet_s=float("inf"))
    yield from _happenings(row, entries)


def _heard(entries: Iterable[LogEntry]) -> tuple[str, ...]:
    """What a model would be shown of what people said."""
    transcript = Transcript()
    transcript.extend((each.seq, each.record) for each in entries if not isinstance(each.record, BadRecord))
    messages = [json.loads(message) for message in transcript.messages]
    return tuple(m["content"] for m in messages if m["role"] == "user" and not m["content"].startswith("[Note"))


def _happenings(row: Session, entries: Iterable[LogEntry]) -> Iterator[Happening]:
    for entry in entries:
        match entry.record:
            case MessageReceived() as received if not received.source.automatic:
                text = json.loads(received.messages[-1])["content"]
                yield Accepted(inbound=text, turn=received.turn, session=row.id)
            case MergedRecord() as merged:
                yield Merged(turn=merged.turn, into=merged.into)
            case TurnFinished() as finished:
                yield Settled(turn=finished.turn, text=json.loads(finished.message)["content"])
            case TurnFailed() as failed:
                yield Settled(turn=failed.turn, failure=failed.failure.kind)
            case BadRecord() as bad:
                yield Complaint(problem=f"session {row.id}: {bad.problem}")
