"""The front desk: what adapters can ask about sessions, on top of the directory and the journal."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from pykka import ActorDeadError, ActorRef

from hermes.actors.directory_protocol import Peek, Release
from hermes.actors.future import LoopFuture
from hermes.actors.journal import ActorJournal
from hermes.actors.routing import Address, find_lineage, find_route
from hermes.actors.session import Post
from hermes.actors.session_machine import suspension
from hermes.actors.session_protocol import Deliver, End, Event, Resume, StopTurn, Suspend
from hermes.actors.transcript import stored_messages
from hermes.actors.why import explain
from hermes.errors import (
    AlreadySeenError,
    BadInputError,
    BusyError,
    RefusedError,
    StoppingError,
    StorageFullError,
    UnknownSessionError,
)
from hermes.events import TurnAnswered, TurnGaveUp, TurnOutcome
from hermes.ports import (
    Clock,
    DropDeadLetter,
    Erase,
    Reader,
    Receipt,
    SessionView,
    StoredMessage,
    Submission,
    Transaction,
)
from hermes.records import MessageReceived, TurnFailed, TurnFinished
from hermes.types import DeadLetter, Phase, Seen, Seq, Session, SessionId, SessionKey, TurnId

SPACE_AGAIN_BYTES = 8 << 20  # free space at which a full disk counts as usable again
_PAGE = 64


class FrontDesk:
    def __init__(
        self,
        *,
        directory: Callable[[], ActorRef[Any]],
        journal: ActorJournal,
        clock: Clock,
        max_waiting: int,
    ) -> None:
        self._directory = directory
        self._journal = journal
        self._clock = clock
        self._closed = ""
        self._full = ""
        self.max_waiting = max_waiting
        self.waiting = 0

    def close(self, reason: str) -> None:
        """Take no more messages; everything else goes on."""
        self._closed = reason

    async def submit(self, submission: Submission) -> Receipt:
        if self._closed:
            raise StoppingError(f"{self._closed}; nothing was stored, try again when it is back")
        if self.waiting >= self.max_waiting:
            raise BusyError(f"{self.waiting} messages are on their way to disk already; try again")
        self.waiting += 1
        try:
            return cast("Receipt", await self._ask(_post_of(submission)))
        except AlreadySeenError as error:
            return _receipt_of_duplicate(error.seen, submission)
        except StorageFullError as error:
            self._full = str(error)
            raise
        finally:
            self.waiting -= 1

    async def outcome(self, session: SessionId, turn: TurnId) -> TurnOutcome | None:
        head, record = await self._journal.fetch(lambda reader: _find_end(reader, session, turn))
        match record:
            case TurnFinished():
                return TurnAnswered(
                    session=session,
                    turn=turn,
                    text=json.loads(record.message)["content"],
                    model=record.model,
                    finish_reason=record.finish_reason,
                    usage=record.usage,
                )
            case TurnFailed():
                return TurnGaveUp(session=session, turn=turn, failure=record.failure)
            case None if head is not None and head.phase == Phase.SUSPENDED:
                return TurnGaveUp(session=session, turn=turn, failure=suspension(head))
            case None:
                return None

    async def view(self, session: SessionId) -> SessionView:
        head, lineage = await self._journal.fetch(lambda reader: _look_up(reader, session))
        mailbox: int | None = await self._ask(Peek(session=head.id))
        return SessionView(
            session=head,
            why=explain(head, self._clock()),
            lineage=lineage,
            live=mailbox is not None,
            mailbox=mailbox or 0,
        )

    async def messages(self, session: SessionId, after: Seq | None, limit: int) -> list[StoredMessage]:
        entries = await self._journal.fetch(lambda reader: reader.log(_look_up(reader, session)[0].id))
        messages = stored_messages(entries)
        return messages[-limit:] if after is None else messages[after + 1 : after + 1 + limit]

    async def recent(self, limit: int, after: SessionId | None = None) -> list[Session]:
        return await self._journal.fetch(lambda reader: reader.recent(limit, after))

    async def stop_turn(self, session: SessionId, reason: str, turn: TurnId | None = None) -> Session:
        return await self._command(session, StopTurn(reason=reason, turn=turn))

    async def end(self, session: SessionId, reason: str) -> Session:
        return await self._command(session, End(reason=reason))

    async def suspend(self, session: SessionId, reason: str) -> Session:
        return await self._command(session, Suspend(reason=reason))

    async def resume(self, session: SessionId, reason: str) -> Session:
        return await self._command(session, Resume(reason=reason), exact=True)

    async def erase(self, session: SessionId) -> None:
        """Forget the whole conversation: this session and everything it grew from or into."""
        _, lineage = await self._journal.fetch(lambda reader: _look_up(reader, session))
        with suppress(RefusedError):  # ended already
            await self.end(session, "it is being deleted")
        for member in lineage:
            await self._ask(Release(session=member))
        await self._store(tuple(Erase(session=member) for member in lineage))

    async def dead_letters(self) -> list[DeadLetter]:
        return await self._journal.fetch(lambda reader: reader.dead_letters())

    async def replay(self, dead_letter: str) -> Receipt:
        letter = next((letter for letter in await self.dead_letters() if letter.id == dead_letter), None)
        if letter is None:
            raise BadInputError(f"there is no dead letter {dead_letter}", code="unknown_dead_letter")
        receipt = await self.submit(
            Submission(
                turn=letter.turn,
                messages=letter.messages,
                source=letter.source,
                session=letter.session,
                options=letter.options,
            )
        )
        await self._store((DropDeadLetter(id=letter.id),))
        return receipt

    async def round_trip(self) -> str:
        """Through the store and the directory and back; says what is wrong, if anything."""
        await self._journal.fetch(lambda reader: reader.bound(SessionKey("pulse")))
        await self._ask(Peek(session=SessionId("pulse")))
        if self._full:
            stats = await self._journal.fetch(lambda reader: reader.stats())
            if stats.free_disk_bytes > SPACE_AGAIN_BYTES:
                self._full = ""
        return self._full

    async def _store(self, transaction: Transaction) -> None:
        done = LoopFuture()
        self._journal.commit(transaction, done.set)
        error = await done
        if error is not None:
            raise error

    async def _command(self, session: SessionId, event: Event, *, exact: bool = False) -> Session:
        return cast("Session", await self._ask(Post(event=event, address=Address(session=session, exact=exact))))

    async def _ask(self, message: object) -> Any:
        try:
            return await self._directory().ask(message, block=False)
        except ActorDeadError as error:
            raise StoppingError("the session directory is not there at the moment; try again") from error


def _post_of(submission: Submission) -> Post:
    event = Deliver(
        turn=submission.turn,
        messages=submission.messages,
        source=submission.source,
        options=submission.options,
        inbound=submission.inbound,
        fingerprint=submission.fingerprint,
    )
    return Post(event=event, address=Address(session=submission.session, key=submission.key))


def _receipt_of_duplicate(seen: Seen, submission: Submission) -> Receipt:
    if seen.fingerprint != submission.fingerprint:
        raise BadInputError(
            "this Idempotency-Key was used before with another request; nothing was stored, use a new key",
            code="idempotency_mismatch",
        )
    return Receipt(session=seen.session, turn=seen.turn, duplicate=True)


def _look_up(reader: Reader, session: SessionId) -> tuple[Session, tuple[SessionId, ...]]:
    head = find_route(reader, Address(session=session)).head
    if head is None:
        raise UnknownSessionError(f"there is no session {session}")
    return head, find_lineage(reader, head)


def _find_end(
    reader: Reader, session: SessionId, turn: TurnId
) -> tuple[Session | None, TurnFinished | TurnFailed | None]:
    """The session, and how its turn ended, looking from the newest records back."""
    head = reader.head(session)
    end = head.next_seq if head is not None else 0
    while end > 0:
        first = max(0, end - _PAGE)
        for entry in reversed(reader.log(session, Seq(first), end - first)):
            match entry.record:
                case (TurnFinished() | TurnFailed()) as record if record.turn == turn:
                    return head, record
                case MessageReceived() as record if record.turn == turn:
                    return head, None  # its beginning, and no end after it
        end = first
    return head, None
