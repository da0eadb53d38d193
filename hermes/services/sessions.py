"""Session service: what adapters can do with sessions, on top of the directory and the journal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast

from hermes.actors.commit import store
from hermes.actors.directory_protocol import Peek, Release, SessionGlance
from hermes.actors.kernel.ref import ActorDeadError, ActorRef
from hermes.actors.session.session_mail import ApproverPlaces, Granted, Post, Revoked
from hermes.domain.access.approver_chat import is_one
from hermes.domain.access.grants import PREFIX as GRANT
from hermes.domain.access.grants import rules_in
from hermes.domain.access.role import Role
from hermes.domain.cause.cause import EndCause
from hermes.domain.cause.end_cause import was_compressed
from hermes.domain.errors import (
    AlreadySeenError,
    BadInputError,
    BusyError,
    RefusedError,
    SessionClosedError,
    SessionInUseError,
    StoppingError,
    StorageFullError,
    UnknownSessionError,
)
from hermes.domain.events import TurnAnswered, TurnGaveUp, TurnOutcome
from hermes.domain.history.message_chain import text_and_calls
from hermes.domain.ids import InboundKey, SessionId, SessionKey, TurnId
from hermes.domain.operations import DropDeadLetter, Enqueue, PutFact, See, Tally
from hermes.domain.outbox_message import DeadLetter, OutboxMessage
from hermes.domain.read.explain import explain
from hermes.domain.read.lineage import Address
from hermes.domain.read.turn_log import find_end, span_of
from hermes.domain.read.views import SessionView
from hermes.domain.records import TurnFailed, TurnFinished
from hermes.domain.session.builder import open_turns, suspension
from hermes.domain.session.protocol import (
    Answer,
    Begin,
    BranchOff,
    CallInside,
    Compress,
    EndInside,
    EndSession,
    Event,
    HandOver,
    JudgeGoal,
    NotePost,
    Request,
    Resume,
    Rewrite,
    SetGoal,
    SetPreference,
    StartBackground,
    StopTurn,
    Suspend,
    UndoTurns,
)
from hermes.domain.session.request import TooFarBackError
from hermes.domain.session.state import Phase, Session, is_pending
from hermes.domain.session.turn_stop import DELETED
from hermes.domain.source import Place, Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.reasoning import reasoning_of
from hermes.domain.turn.submission import Handling, Receipt, Seen, Submission
from hermes.domain.turn.tool_call import client_calls
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.values import replace
from hermes.ports.given import Clock
from hermes.ports.sessions import Sessions
from hermes.ports.storage import Journal, Transaction
from hermes.services.archive import Archive, look_up, reply_key
from hermes.services.erasure import Erasure
from hermes.supervision.crash_log import parking

SPACE_AGAIN_BYTES = 8 << 20  # free space at which a full disk counts as usable again


async def _ignore_erasure(_: SessionId) -> None:
    """Default for `erased`: nothing else is kept of a session."""


class SessionService(Archive, Sessions):
    def __init__(
        self,
        *,
        directory: Callable[[], ActorRef[Any]],
        journal: Journal,
        clock: Clock,
        max_waiting: int,
        erased: Callable[[SessionId], Awaitable[None]] = _ignore_erasure,
        resets: Callable[[Session], str] = lambda _: "",
        deliver: Callable[[Sequence[OutboxMessage]], None] = lambda _: None,
        live: Callable[[SessionId], Session | None] = lambda _: None,
    ) -> None:
        super().__init__(journal, clock, live)
        self._directory = directory
        self._erased = erased  # erases what others keep of a session
        self._resets = resets  # explains when a session is reset
        self._deliver = deliver  # hands outbox messages to delivery
        self._closed = ""
        self._full = ""
        self.max_waiting = max_waiting
        self.waiting = 0

    def close(self, reason: str) -> None:
        """Refuse new messages; everything else continues."""
        self._closed = reason

    @property
    def closed(self) -> bool:
        return bool(self._closed)

    async def submit(self, submission: Submission) -> Receipt:
        if self._closed and (before := await self.accepted(submission)) is not None:
            return before
        self._check_intake()
        if self.waiting >= self.max_waiting:
            raise BusyError(f"{self.waiting} messages are being stored; nothing was stored, try again")
        self.waiting += 1
        try:
            return cast("Receipt", await self._ask(_post_of(submission)))
        except AlreadySeenError as error:
            if error.seen.key in submission.locates:
                raise  # an equal request, which is not always the same one
            return await self._repeated(submission, error.seen)
        except (BadInputError, BusyError, SessionClosedError):
            seen = await self._find_seen(submission)  # a retry of an accepted message gets its receipt
            if seen is None:
                raise
            return await self._repeated(submission, seen)
        finally:
            self.waiting -= 1

    async def _repeated(self, submission: Submission, seen: Seen) -> Receipt:
        receipt = _receipt_of_duplicate(seen, submission)
        await self._resume_held_turn(submission, receipt.session)
        return receipt

    async def _resume_held_turn(self, submission: Submission, session: SessionId) -> None:
        """Resume a held turn when its client repeats the request."""
        if submission.source.place is not None or submission.source.automatic:
            return  # redelivered by a platform or a process, not by a person
        with suppress(RefusedError, UnknownSessionError):
            head = await self.conversation(session)
            if head.phase == Phase.RESUME_PENDING and head.turn is not None:
                await self.resume(head.id, "the client requested its answer again")

    async def rewrite(self, session: SessionId, place: Place, message: EncodedMessage, role: Role) -> Session:
        return await self._command(session, Rewrite(place=place, message=message, role=role))

    async def accepted(self, submission: Submission) -> Receipt | None:
        seen = await self._find_seen(submission)
        return None if seen is None else _receipt_of_duplicate(seen, submission)

    async def note_command(self, submission: Submission) -> Receipt | None:
        if submission.inbound is None:
            return None
        try:
            await self._record_seen(submission, submission.inbound, submission.fingerprint)
        except AlreadySeenError as error:
            return _receipt_of_duplicate(error.seen, submission)
        return None

    async def note_reply(self, submission: Submission, reply: bytes) -> None:
        if submission.inbound is not None:
            await self._record_seen(submission, reply_key(submission.inbound), reply)

    async def locate(self, seen: Seen) -> None:
        await self._store((See(seen=seen, latest=True),))

    async def _record_seen(self, command: Submission, key: InboundKey, fingerprint: bytes) -> None:
        session = command.session or SessionId("")
        seen = Seen(key=key, session=session, turn=command.turn, fingerprint=fingerprint, at=self._clock())
        await self._store((See(seen=seen),))

    def _check_intake(self) -> None:
        if self._closed:
            raise StoppingError(f"{self._closed}; nothing was stored, try again when it is back")

    async def begin(
        self, source: Source, *, session: SessionId | None = None, key: SessionKey | None = None, title: str = ""
    ) -> Session:
        event = Begin(source=source, title=title)  # also while the daemon is stopping: it starts no work
        return cast("Session", await self._ask(Post(event=event, address=Address(session=session, key=key))))

    async def _find_seen(self, submission: Submission) -> Seen | None:
        key = submission.inbound
        return None if key is None else await self._journal.fetch(lambda reader: reader.seen(key))

    async def outcome(self, session: SessionId, turn: TurnId) -> TurnOutcome | None:
        head, record, usage = await self._journal.fetch(lambda reader: find_end(reader, session, turn))
        if head is None:
            return TurnGaveUp(session=session, turn=turn, failure=DELETED)
        match record:
            case TurnFinished():
                text, calls = text_and_calls(record.message)
                return TurnAnswered(
                    session=head.id,
                    turn=turn,
                    text=text,
                    model=record.model,
                    finish_reason=record.finish_reason,
                    usage=usage,
                    calls=client_calls(calls) if record.handed else (),
                    reasoning=reasoning_of(record.message).text,
                )
            case TurnFailed():
                return TurnGaveUp(session=head.id, turn=turn, failure=record.failure)
            case None:
                failure = await self._failure_of_unfinished(head, turn)
                return None if failure is None else TurnGaveUp(session=head.id, turn=turn, failure=failure)

    async def _failure_of_unfinished(self, head: Session, turn: TurnId) -> Failure | None:
        """Return why an open turn will not end by itself; None if it will."""
        if all(turn not in (open_turn.id, *open_turn.merged) for open_turn in open_turns(head)):
            return Failure(kind=FailureKind.INTERNAL, message="the record of how this turn ended is damaged")
        if head.phase == Phase.SUSPENDED:
            return suspension(head)
        glance: SessionGlance = await self._ask(Peek(session=head.id))
        return parking(head.id, glance.parked) if glance.parked else None

    async def view(self, session: SessionId, *, exact: bool = False) -> SessionView:
        head, lineage = await self._journal.fetch(lambda reader: look_up(reader, session, exact=exact))
        glance: SessionGlance = await self._ask(Peek(session=head.id))
        reset = self._resets(head)
        return SessionView(
            session=head,
            why="\n".join(filter(None, (explain(head, self._clock()), reset, glance.parked, self._journal.full))),
            reset=reset,
            lineage=lineage,
            live=glance.mailbox is not None,
            mailbox=glance.mailbox or 0,
        )

    async def stop_turn(
        self,
        session: SessionId,
        reason: str,
        turn: TurnId | None = None,
        *,
        by: Place | None = None,
        who: str = "",
    ) -> Session:
        return await self._command(session, StopTurn(reason=reason, turn=turn, by=by, who=who))

    async def end(self, session: SessionId, reason: str, *, by: Place | None = None, who: str = "") -> Session:
        return await self._command(session, EndSession(reason=reason, by=by, who=who))

    async def suspend(self, session: SessionId, reason: str) -> Session:
        return await self._command(session, Suspend(reason=reason))

    async def resume(self, session: SessionId, reason: str, key: SessionKey | None = None) -> Session:
        if key is not None:  # any id of the conversation may be given
            session = (await self.conversation(session)).id
        return await self._command(session, Resume(reason=reason, key=key), exact=True)

    # ------------------------------------------------------------ requests of people

    async def answer(self, session: SessionId, answer: str, source: Source, call: str = "") -> Session:
        return await self._command(session, Answer(answer=answer, source=source, call=call))

    async def prefer(self, session: SessionId, name: str, value: str | bool, reason: str) -> Session:
        return await self._command(session, SetPreference(name=name, value=value, reason=reason))

    async def tell_inside(self, session: SessionId, event: CallInside | EndInside) -> Session:
        """Tell a session about a call of its script."""
        return await self._command(session, event, exact=True)

    async def set_goal(self, session: SessionId, wish: SetGoal) -> Session:
        return await self._command(session, wish)

    async def judge_goal(self, session: SessionId, event: JudgeGoal) -> Session:
        return await self._command(session, event, exact=True)

    async def start_background(self, session: SessionId, wish: StartBackground) -> Session:
        return await self._command(session, wish)

    async def hand_over(self, session: SessionId, wish: HandOver) -> Session:
        return await self._command(session, wish)

    async def post(self, session: SessionId, wish: NotePost) -> Session:
        return await self._command(session, wish, exact=True)

    async def compress(self, session: SessionId, focus: str = "") -> Session:
        return await self._command(session, Compress(reason="a user requested it", focus=focus))

    async def branch(
        self, session: SessionId, title: str = "", *, move_key: bool = False, after: TurnId | None = None
    ) -> Session:
        branch = BranchOff(reason=f"a branch of {session}", title=title, move_key=move_key)
        if after is None:
            return await self._command(session, branch)
        place, span = await self._journal.fetch(lambda reader: span_of(reader, session, after))
        return await self._command(place, replace(branch, span=span), exact=True)

    async def undo(self, session: SessionId, turns: int = 1) -> Session:
        """Undo the last turns, including those from before a compression."""
        try:
            return await self._command(session, UndoTurns(turns=turns))
        except TooFarBackError as error:
            return await self._undo_before(session, turns, error)

    async def retry(self, session: SessionId, turn: TurnId, source: Source) -> Receipt:
        """Undo the last turn and submit its message again as a new turn."""
        return cast("Receipt", await self._command(session, UndoTurns(turns=1, again=turn, source=source)))

    async def _undo_before(self, session: SessionId, turns: int, error: TooFarBackError) -> Session:
        """Undo turns from before a compression: continue with a branch of the ancestor, without those turns."""
        head, lineage = await self._journal.fetch(lambda reader: look_up(reader, session))
        if is_pending(head):
            raise BadInputError(f"session {head.id} is {head.phase}; wait or stop it first", code="wrong_phase")
        own = error.own
        for ancestor in reversed(lineage[:-1]):
            if not await self._was_compressed(ancestor):
                break
            try:
                request = BranchOff(reason=f"{turns} turns were taken back", undo=turns - own, move_key=True)
                earlier = await self._command(ancestor, request, exact=True)
            except TooFarBackError as further:
                own += further.own
                continue
            reason = "taken back to before its beginning"
            end = EndSession(reason=reason, successor=earlier.id, cause=EndCause.TAKEN_BACK)
            await self._ask(Post(event=end, address=Address(session=head.id)))
            return earlier
        raise BadInputError(f"there are no {turns} turns to undo", code="nothing_to_undo")

    async def _was_compressed(self, session: SessionId) -> bool:
        head = await self._journal.fetch(lambda reader: reader.head(session))
        return head is not None and was_compressed(head)

    async def remember(self, name: str, value: bytes | None) -> None:
        await self._store((PutFact(name=name, value=value),))
        if name.startswith(GRANT):
            rules = rules_in([name])
            with suppress(ActorDeadError):  # the next directory reads it from disk
                self._directory().tell(Revoked(rules=rules) if value is None else Granted(rules=rules))
        elif is_one(name):
            with suppress(ActorDeadError):
                self._directory().tell(ApproverPlaces(facts={name: value}))

    async def count(self, tally: Tally) -> None:
        """Add usage that belongs to no session."""
        await self._store((tally,))

    async def withdraw(self, kind: str) -> None:
        if kind not in await self.granted():
            raise BadInputError(f"there is no standing grant for {kind}", code="not_granted")
        await self.remember(GRANT + kind, None)

    async def erase(self, session: SessionId) -> None:
        """Erase the whole conversation: this session with its ancestors and descendants."""
        end = EndSession(reason="it is being deleted")
        await Erasure(self._journal, end=partial(self._end_with, end), erased=self._erased).erase(session)

    async def erase_unused(self, session: SessionId, since: float) -> None:
        """Erase the conversation unless it is in use. Raises SessionInUseError if it was used after that time."""
        end = EndSession(reason="it was not used for a long time", cause=EndCause.EXPIRED, unused_since=since)
        await Erasure(self._journal, end=partial(self._end_with, end), erased=self._erased).erase(session)

    async def _end_with(self, end: EndSession, session: SessionId) -> None:
        try:
            await self._command(session, end, exact=True)
        except SessionInUseError:
            raise
        except (BadInputError, UnknownSessionError):
            pass  # ended or erased already
        await self._ask(Release(session=session))

    async def replay(self, dead_letter: str) -> Receipt:
        letter = next((letter for letter in await self.dead_letters() if letter.id == dead_letter), None)
        if letter is None:
            raise BadInputError(f"there is no dead letter {dead_letter}", code="unknown_dead_letter")
        if letter.undelivered is not None:
            return await self._redeliver(letter, letter.undelivered)
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

    async def _redeliver(self, letter: DeadLetter, outgoing: OutboxMessage) -> Receipt:
        outgoing = replace(outgoing, sent=(), sending=False, tries=0, problem="", refusals=0)
        await self._store((DropDeadLetter(id=letter.id), Enqueue(outgoing=outgoing)))
        self._deliver((outgoing,))
        return Receipt(session=letter.session, turn=letter.turn, handling=Handling.DELIVERING)

    async def round_trip(self) -> str:
        """Check the store and the directory with one request each. Returns the problem, if any."""
        await self._journal.fetch(lambda reader: reader.bound(SessionKey("pulse")))
        await self._ask(Peek(session=SessionId("pulse")))
        self._full = self._journal.full or self._full
        if self._full:
            stats = await self._journal.fetch(lambda reader: reader.stats())
            if stats.free_disk_bytes > SPACE_AGAIN_BYTES and await self._can_write():
                self._full = ""
        return self._full

    async def _can_write(self) -> bool:
        """Write to the store: quotas and file size limits do not show in the free disk space."""
        try:
            await self._store((PutFact(name="pulse", value=b""),))
        except StorageFullError:
            return False
        return True

    async def _store(self, transaction: Transaction) -> None:
        await store(self._journal, transaction)

    async def _command(self, session: SessionId, event: Event | Request, *, exact: bool = False) -> Session:
        return cast("Session", await self._ask(Post(event=event, address=Address(session=session, exact=exact))))

    async def _ask(self, message: object) -> Any:
        try:
            return await self._directory().ask(message, block=False)
        except ActorDeadError as error:
            raise StoppingError("the session directory is restarting; try again") from error


def _post_of(submission: Submission) -> Post:
    return Post(event=submission, address=Address(session=submission.session, key=submission.key))


def _receipt_of_duplicate(seen: Seen, submission: Submission) -> Receipt:
    if seen.fingerprint != submission.fingerprint:
        raise BadInputError(
            "this Idempotency-Key was used before with another request; nothing was stored, use a new key",
            code="idempotency_mismatch",
        )
    return Receipt(session=seen.session, turn=seen.turn, duplicate=True)
