"""What the disk of a simulated machine says in the end, as the judge reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from hermes.actors.session_state import replay
from hermes.records import Merged as MergedRecord
from hermes.records import MessageReceived, TurnFailed, TurnFinished
from tests.history import Accepted, Happening, Looked, Merged, Owed, Settled, Stored
from tests.simulation.disk import Disk
from tests.simulation.minds import heard, transcript_of


def survey(disk: Disk) -> Iterator[Happening]:
    chats: dict[str, str] = {}  # turns that began on a chat platform, and where
    for row in disk.sessions():
        entries = disk.log(row.id)
        yield Stored(row=row, fold=replay(row.id, entries))
        yield Looked(session=row.id, inbounds=heard(transcript_of(disk, row.id).messages))
        for entry in entries:
            match entry.record:
                case MessageReceived() as received:
                    if received.source.place is not None:
                        chats[received.turn] = received.source.place.chat
                    for inbound in heard(received.messages):
                        yield Accepted(inbound=inbound, turn=received.turn, session=row.id)
                case MergedRecord() as merged:
                    yield Merged(turn=merged.turn, into=merged.into)
                case TurnFinished() as finished:
                    yield Settled(turn=finished.turn, text=json.loads(finished.message)["content"])
                case TurnFailed() as failed:
                    yield Settled(turn=failed.turn, failure=failed.failure.kind)
                case _:
                    pass
    yield from _owed(disk, chats)


def _owed(disk: Disk, chats: Mapping[str, str]) -> Iterator[Happening]:
    for row in disk.sessions():
        for entry in disk.log(row.id):
            if isinstance(entry.record, TurnFinished) and entry.record.turn in chats:
                yield Owed(to=chats[entry.record.turn], turn=entry.record.turn)
