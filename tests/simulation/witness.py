"""Whoever watches the disk of a simulated machine, for what the disk itself does not tell any more in the end: which
sessions were deleted, with all that they held, and which messages were taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hermes.domain.ids import SessionId
from hermes.domain.operations import Append, Erase
from hermes.domain.records import Answered, MessageReceived, Undone
from hermes.domain.retention import is_expiring
from hermes.domain.session.builder import open_turns
from hermes.domain.session.state import Session
from hermes.ports.storage import Transaction
from tests.simulation.minds import heard, transcript_of
from tests.simulation.outside import Outside
from tests.simulation.survey import survey_session
from tests.support.judge import Accepted, Erased, Happening, Looked, Settled, Withdrawn


class Witness:
    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._disk = outside.disk

    def __call__(self, transaction: Transaction) -> Callable[[], None]:
        """Before it is stored. What comes of this is called if it was."""
        found: list[Happening] = []
        undone: list[tuple[SessionId, tuple[str, ...]]] = []
        for operation in transaction:
            if isinstance(operation, Erase):
                found += self._erased(operation.session)
            elif isinstance(operation, Append) and any(isinstance(each, Undone) for each in operation.records):
                undone.append((operation.session, self._heard(operation.session)))

        def stored() -> None:
            self._outside.history.add(*found, *self._withdrawn(found))
            for session, before in undone:
                left = self._heard(session)
                gone = tuple(inbound for inbound in before if inbound not in left)
                self._outside.note(f"taken back in {session}: {' '.join(gone)}")
                self._outside.history.add(Withdrawn(inbounds=gone, session=session))

        return stored

    def _erased(self, session: SessionId) -> Iterator[Happening]:
        rows = [row for row in self._disk.sessions() if row.id == session]
        for row in rows:
            self._outside.note(f"erased {session}")
            self._check_unused(row)
            yield from survey_session(self._disk, row)
            for turn in open_turns(row):  # somebody had resumed it meanwhile: whoever waits is told that it is gone
                yield Settled(turn=turn.id, failure="deleted")
            yield Erased(session=session)

    def _check_unused(self, row: Session) -> None:
        """What is deleted as unused was not used since the sweep had looked."""
        records = [each.record for each in self._disk.log(row.id)]
        used = [
            each
            for each in records
            if isinstance(each, Answered) or (isinstance(each, MessageReceived) and not each.source.automatic)
        ]
        # Only the last one counts: the clock may have been ahead before.
        late = [each.turn for each in used[-1:] if each.at > self._outside.unused_before]
        if is_expiring(row) and late:
            self._outside.complain(f"{row.id} was deleted as unused in spite of {late[0]}")

    def _withdrawn(self, erased: list[Happening]) -> Iterator[Happening]:
        """What people said there and is in no other session is to be gone for good."""
        if not erased:
            return
        left = {inbound for row in self._disk.sessions() for inbound in self._held(row.id)}
        gone = dict.fromkeys(inbound for each in erased for inbound in _inbounds(each) if inbound not in left)
        if gone:
            yield Withdrawn(inbounds=tuple(gone))

    def _held(self, session: SessionId) -> tuple[str, ...]:
        """What was said there, or waits there to be heard."""
        transcript = transcript_of(self._disk, session)
        return heard((*transcript.messages, *(each for said in transcript.waiting.values() for each in said)))

    def _heard(self, session: SessionId) -> tuple[str, ...]:
        return heard(transcript_of(self._disk, session).messages)


def _inbounds(happening: Happening) -> tuple[str, ...]:
    if isinstance(happening, Accepted):
        return (happening.inbound,)
    return happening.inbounds if isinstance(happening, Looked) else ()
