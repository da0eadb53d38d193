"""The front desk: what adapters can ask about sessions, on top of the directory and the journal."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from pykka import ActorDeadError, ActorRef

from hermes.actors.casualties import parking
from hermes.actors.directory_protocol import Glimpse, Peek, Release
from hermes.actors.future import LoopFuture
from hermes.actors.journal import ActorJournal
from hermes.actors.routing import Address, find_family, find_lineage, find_route
from hermes.actors.session import Post
from hermes.actors.session_machine import DELETED, open_turns, suspension
from hermes.actors.session_protocol import Deliver, End, Event, Resume, StopTurn, Suspend
from hermes.actors.transcript import read_page
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
from hermes.types import DeadLetter, Failure, FailureKind, Phase, Seen, Seq, Session, SessionId, SessionKey, TurnId

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
        except BusyError:
            seen = await self._seen(submission)  # a retry of what waits already is not turned away
            if seen is None:
                raise
            return _receipt_of_duplicate(seen, submission)
        except StorageFullError as error:
            self._full = str(error)
            raise
        finally:
            self.waiting -= 1

    async def _seen(self, submission: Submission) -> Seen | None:
        key = submission.inbound
        return None if key is None else await self._journal.fetch(lambda reader: reader.seen(key))

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
            case None:
                failure = await self._why_never(head, turn)
                return None if failure is None else TurnGaveUp(session=session, turn=turn, failure=failure)

    async def _why_never(self, head: Session | None, turn: TurnId) -> Failure | None:
        """Why a turn that has no end will not get one by itself; None: it will."""
        if head is None:
            return DELETED
        if all(turn != open_turn.id for open_turn in open_turns(head)):
            return Failure(kind=FailureKind.INTERNAL, message="the record of how this turn ended is damaged")
        if head.phase == Phase.SUSPENDED:
            return suspension(head)
        glimpse: Glimpse = await self._ask(Peek(session=head.id))
        return parking(head.id, glimpse.parked) if glimpse.parked else None

    async def view(self, session: SessionId) -> SessionView:
        head, lineage = await self._journal.fetch(lambda reader: _look_up(reader, session))
        glimpse: Glimpse = await self._ask(Peek(session=head.id))
        return SessionView(
            session=head,
            why="\n".join(filter(None, (explain(head, self._clock()), glimpse.parked))),
            lineage=lineage,
            live=glimpse.mailbox is not None,
            mailbox=glimpse.mailbox or 0,
        )

    async def messages(self, session: SessionId, after: Seq | None, limit: int) -> list[StoredMessage]:
        return await self._journal.fetch(
            lambda reader: read_page(reader, _look_up(reader, session)[0], after, limit),
        )

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
        family = await self._journal.fetch(lambda reader: find_family(reader, session))
        if not family:
            raise UnknownSessionError(f"there is no session {session}")
        while family:
            for member in family:
                await self._erase(member)
            # A message that came meanwhile may have continued the conversation.
            family = await self._journal.fetch(lambda reader: find_family(reader, session))

    async def _erase(self, session: SessionId) -> None:
        with suppress(RefusedError, UnknownSessionError):  # ended already, or gone
            await self._command(session, End(reason="it is being deleted"), exact=True)
        await self._ask(Release(session=session))
        with suppress(UnknownSessionError):
            await self._store((Erase(session=session),))

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
