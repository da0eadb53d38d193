"""Read side of the session service: journal reads that involve no actor."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hermes.domain.access.grants import PREFIX as GRANT
from hermes.domain.access.grants import rules_in
from hermes.domain.access.question import waiting_call
from hermes.domain.cause.end_cause import was_compressed
from hermes.domain.errors import UnknownSessionError
from hermes.domain.ids import InboundKey, Seq, SessionId, SessionKey, TurnId
from hermes.domain.operations import Tally
from hermes.domain.outbox_message import DeadLetter
from hermes.domain.read.lineage import CLOSED_PHASES, Address, find_lineage, find_route
from hermes.domain.read.reader import Activity, Reader
from hermes.domain.read.trace import TraceLine
from hermes.domain.read.transcript_page import read_around, read_page
from hermes.domain.read.turn_log import records_of
from hermes.domain.read.views import JournalEntry, JournalPage, StoredMessage, TurnRecord
from hermes.domain.session.state import Session
from hermes.domain.turn.submission import Seen
from hermes.ports.given import Clock
from hermes.ports.storage import Journal


class Archive:
    def __init__(
        self, journal: Journal, clock: Clock, live: Callable[[SessionId], Session | None] = lambda _: None
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._live = live  # returns the head of a session in memory

    async def reply_of(self, command: InboundKey) -> bytes | None:
        seen = await self._journal.fetch(lambda reader: reader.seen(reply_key(command)))
        return None if seen is None else seen.fingerprint

    async def located(self, key: InboundKey) -> Seen | None:
        return await self._journal.fetch(lambda reader: reader.seen(key))

    async def bound(self, key: SessionKey) -> SessionId | None:
        return await self._journal.fetch(lambda reader: reader.bound(key))

    async def conversation(self, session: SessionId) -> Session:
        return await self._journal.fetch(lambda reader: _end_of_own(reader, session))

    async def platform(self, session: SessionId) -> str:
        head = self._live(session)
        if head is not None and head.phase not in CLOSED_PHASES:
            return head.platform
        return (await self._journal.fetch(lambda reader: look_up(reader, session)[0])).platform

    async def messages(
        self, session: SessionId, after: Seq | None, limit: int, *, exact: bool = False, before: Seq | None = None
    ) -> list[StoredMessage]:
        return await self._journal.fetch(
            lambda reader: read_page(reader, look_up(reader, session, exact=exact)[0], after, limit, before=before),
        )

    async def around(self, session: SessionId, seq: Seq | None, n: int) -> list[StoredMessage]:
        """Return messages of this session before, at and after a position; `None` is the end."""
        return await self._journal.fetch(lambda reader: read_around(reader, session, seq, n))

    async def recent(self, limit: int, after: SessionId | Activity | None = None) -> list[Session]:
        return await self._journal.fetch(lambda reader: reader.recent(limit, after))

    async def heads(self, sessions: Iterable[SessionId]) -> dict[SessionId, Session]:
        """Return the heads of those sessions that exist."""

        def read(reader: Reader) -> dict[SessionId, Session]:
            routes = [find_route(reader, Address(session=each, exact=True)) for each in sessions]
            return {route.head.id: route.head for route in routes if route.head is not None}

        return await self._journal.fetch(read)

    async def used(self, first_day: str) -> list[Tally]:
        return await self._journal.fetch(lambda reader: reader.tallies(first_day))

    async def records(self, session: SessionId, turn: TurnId) -> list[TurnRecord]:
        """Return all records of a turn, across the sessions of its lineage."""
        return await self._journal.fetch(lambda reader: records_of(reader, session, turn))

    async def journal(self, after: int, limit: int) -> JournalPage:
        end = self.journal_end()
        found = await self._journal.fetch(lambda reader: reader.tail(after, limit))
        entries = [
            JournalEntry(position=position, session=session, seq=seq, record=record)
            for position, session, seq, record in found
        ]
        last = entries[-1].position if entries else after
        return JournalPage(entries=entries, position=last if len(entries) == limit else max(last, end))

    def journal_end(self) -> int:
        return self._journal.last_position

    async def trace(self, name: str, limit: int) -> list[TraceLine]:
        from hermes.domain.read.trace_search import find_trace  # noqa: PLC0415 - only when someone asks

        now = self._clock()
        return await self._journal.fetch(lambda reader: find_trace(reader, name, limit=limit, now=now))

    async def fact(self, name: str) -> bytes | None:
        return await self._journal.fetch(lambda reader: reader.fact(name))

    async def granted(self) -> list[str]:
        return sorted(await self._journal.fetch(lambda reader: rules_in(reader.facts(GRANT))))

    async def unfinished(self) -> list[Session]:
        def read(reader: Reader) -> list[Session]:
            heads = (find_route(reader, Address(session=each, exact=True)).head for each in reader.pending())
            return [head for head in heads if head is not None]

        return await self._journal.fetch(read)

    async def awaiting_approval(self) -> list[Session]:
        return [head for head in await self.unfinished() if (call := waiting_call(head)) and call.routed]

    async def dead_letters(self) -> list[DeadLetter]:
        return await self._journal.fetch(lambda reader: reader.dead_letters())


def reply_key(command: InboundKey) -> InboundKey:
    """Return the key of a command's stored reply. It expires together with the command's own key."""
    return InboundKey(f"{command}:reply")


def _end_of_own(reader: Reader, session: SessionId) -> Session:
    head = find_route(reader, Address(session=session, exact=True)).head
    while head is not None and was_compressed(head) and head.successor is not None:
        head = find_route(reader, Address(session=head.successor, exact=True)).head
    if head is None:
        raise UnknownSessionError(f"there is no session {session}")
    return head


def look_up(reader: Reader, session: SessionId, *, exact: bool = False) -> tuple[Session, tuple[SessionId, ...]]:
    head = find_route(reader, Address(session=session, exact=exact)).head
    if head is None:
        raise UnknownSessionError(f"there is no session {session}")
    return head, find_lineage(reader, head)
