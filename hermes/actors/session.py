"""The session actor: a thin shell around the pure machine.

It takes one event at a time, writes what the machine decides, and acts when the journal says it is on disk; mail
that comes in between waits its turn. So what it holds in memory is never ahead of the disk, and a refused write
leaves nothing to undo. It reads no clock and no file, and waits for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import TypeAlias, assert_never

from loguru import logger
from pykka import ActorDeadError

from hermes.actors.future import LoopFuture
from hermes.actors.loop import LoopActor
from hermes.actors.routing import NOWHERE, Address
from hermes.actors.session_machine import DELETED, given_up, step
from hermes.actors.session_protocol import (
    Accept,
    BeginTurn,
    CancelTurn,
    Effect,
    Event,
    Publish,
    Recover,
    Refuse,
    Reroute,
    Step,
    TurnErrored,
    TurnSucceeded,
)
from hermes.actors.session_state import is_pending
from hermes.actors.transcript import Transcript
from hermes.errors import (
    AlreadySeenError,
    HermesError,
    OutcomeUnknownError,
    SequenceConflictError,
    StorageFullError,
    UnknownSessionError,
)
from hermes.events import PhaseChanged, TurnAccepted
from hermes.ports import ActorView, Append, Clock, Hub, Journal, Receipt, TurnHandle, TurnJob, TurnReport, Turns
from hermes.records import BadRecord, LogEntry, Record
from hermes.types import Phase, Seq, Session, SessionId, Turn
from hermes.values import dataclass

RETRY_WRITE_S = 1.0  # how soon a result that found no space on disk is offered again


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """An event for a session, and who waits for the answer. `notice` goes back with the receipt."""

    event: Event
    address: Address = NOWHERE
    reply: LoopFuture | None = None
    notice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passivate:
    """Leave memory if nothing is in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MayLeave:
    """To the directory: nobody has any use for this session."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class StayedBusy:
    """The answer to Passivate of a session that has work."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """A message that this session could not take: told to the directory, which knows where it goes now."""

    session: SessionId
    post: Post
    moved: bool  # the session takes no more messages


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionServices:
    """What all sessions share; one object, so that an idle session stays small."""

    journal: Journal
    turns: Turns
    hub: Hub
    clock: Clock
    tell_directory: Callable[[object], None]
    max_queue: Callable[[], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Committed:
    error: HermesError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded:
    entries: list[LogEntry]
    error: HermesError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writing:
    post: Post
    step: Step
    records: tuple[Record, ...]


_Mail: TypeAlias = Post | TurnReport | Passivate


class SessionActor(LoopActor):
    __slots__ = (
        "_alongside",
        "_missed",
        "_recover_reason",
        "_services",
        "_session",
        "_stash",
        "_transcript",
        "_unwritten",
        "_work",
        "_writing",
    )
    kind = "session"

    def __init__(
        self,
        services: SessionServices,
        session: Session,
        *,
        unwritten: tuple[Record, ...] = (),
        alongside: tuple[Append, ...] = (),
        recover_reason: str = "",
    ) -> None:
        super().__init__()
        self._services = services
        self._session = session
        self._unwritten = unwritten  # a new session's first record, stored together with its first message
        self._alongside = alongside  # what must be stored in the same transaction
        self._recover_reason = recover_reason
        self._writing: _Writing | None = None
        self._stash: list[_Mail] | None = None
        self._transcript: Transcript | None = None
        self._missed: list[tuple[Seq, Record]] | None = None  # committed while the transcript is being loaded
        self._work: TurnHandle | None = None

    def statistics(self) -> ActorView:
        """With the session's phase for a state: that is what an operator looks for."""
        view = super().statistics()
        return replace(view, state=self._session.phase) if view.state == "running" else view

    # ------------------------------------------------------------ mail

    def on_start(self) -> None:
        if is_pending(self._session):
            self._take(Post(event=Recover(reason=self._recover_reason)))

    def on_receive(self, message: object) -> None:
        match message:
            case Post() if self._writing is None:
                self._take(message)
            case _Committed():
                self._on_committed(message)
            case _Loaded():
                self._on_loaded(message)
            case Post() | TurnReport() | Passivate() if self._writing is not None:
                self._stash = self._stash or []
                self._stash.append(message)
            case TurnReport():
                self._take(Post(event=_event_of(message)))
            case Passivate():
                self._passivate()
            case _:
                super().on_receive(message)

    def _take(self, post: Post) -> None:
        services = self._services
        result = step(self._session, post.event, services.clock(), max_queue=services.max_queue())
        if not result.records:
            self._perform(post, result)
            return
        records = (*self._unwritten, *result.records)
        append = Append(
            session=self._session.id,
            expected_seq=Seq(result.session.next_seq - len(records)),
            epoch=services.journal.epoch,
            records=records,
            head=result.session,
            pending=is_pending(result.session),
            bind=result.session.key if self._unwritten else None,
            seen=result.seen,
        )
        services.journal.commit((append, *self._alongside), self._wrote)
        self._writing = _Writing(post=post, step=result, records=records)

    def _wrote(self, error: HermesError | None) -> None:
        self._tell_self(_Committed(error=error))

    def _tell_self(self, message: object) -> None:
        try:
            self.actor_ref.tell(message)
        except ActorDeadError:
            # The session ended meanwhile. What was written is on disk, and its next actor starts from there.
            logger.debug("session {} had ended before {} came", self.name, type(message).__name__)

    # ------------------------------------------------------------ what the journal says

    def _on_committed(self, committed: _Committed) -> None:
        writing, self._writing = self._writing, None
        assert writing is not None
        if committed.error is not None:
            self._refused(writing.post, committed.error)
        else:
            first = Seq(writing.step.session.next_seq - len(writing.records))
            self._unwritten = self._alongside = ()
            self._session = writing.step.session
            self._remember([(Seq(first + index), record) for index, record in enumerate(writing.records)])
            self._perform(writing.post, writing.step)
        self._unstash()

    def _refused(self, post: Post, error: HermesError) -> None:
        match error:
            case SequenceConflictError() | UnknownSessionError():
                # Somebody else wrote to this session or deleted it, or was first to continue the same conversation.
                # The message is not to blame: it goes back, and finds whoever is right about the session.
                self._give_back(post, moved=True)
                if not self._unwritten:
                    self._tell_if_deleted(error)
                    raise error
            case AlreadySeenError() if self._unwritten:
                fail(post, error)
                self._services.tell_directory(MayLeave(session=self._session.id))
            case StorageFullError() if post.reply is None:
                # Nobody can be told, and what came out must not be lost: offer it again until there is space.
                self.tell_later(RETRY_WRITE_S, post)
            case _ if post.reply is None:
                raise error
            case _:
                fail(post, error)

    def _tell_if_deleted(self, error: HermesError) -> None:
        if isinstance(error, UnknownSessionError):
            for event in given_up(self._session, DELETED):
                self._services.hub.publish(event)

    def _give_back(self, post: Post, *, moved: bool) -> None:
        if post.reply is not None:  # else it is its own: whoever comes after it starts from what is stored
            self._services.tell_directory(Returned(session=self._session.id, post=post, moved=moved))

    def _unstash(self) -> None:
        while self._stash and self._writing is None:
            self.on_receive(self._stash.pop(0))
        self._stash = self._stash or None

    # ------------------------------------------------------------ effects

    def _perform(self, post: Post, result: Step) -> None:
        answered = False
        for effect in result.effects:
            answered = self._do(effect, post) or answered
        if post.reply is not None and not answered:
            post.reply.settle(self._session)

    def _do(self, effect: Effect, post: Post) -> bool:
        """Do it; True if that answered whoever waits."""
        match effect:
            case Accept():
                self._accept(effect, post)
                return True
            case Refuse():
                fail(post, effect.error)
                return True
            case Reroute():
                self._give_back(post, moved=True)
                return True
            case BeginTurn():
                self._begin(effect.turn)
            case CancelTurn():
                self._cancel()
            case Publish():
                self._publish(effect)
            case _:
                assert_never(effect)
        return False

    def _accept(self, accept: Accept, post: Post) -> None:
        session = self._session.id
        if post.reply is not None:
            receipt = Receipt(session=session, turn=accept.turn, position=accept.position, notice=post.notice)
            post.reply.settle(receipt)
        self._services.hub.publish(TurnAccepted(session=session, turn=accept.turn, position=accept.position))

    def _publish(self, effect: Publish) -> None:
        event = effect.event
        if isinstance(event, PhaseChanged):
            logger.info("session {} is {}: {}", event.session, event.phase, event.reason)
        self._services.hub.publish(event)

    # ------------------------------------------------------------ the turn

    def _begin(self, turn: Turn) -> None:
        if self._transcript is not None:
            self._start_work(self._transcript, turn)
        elif self._missed is None:
            self._missed = []
            session = self._session.id
            self._services.journal.read(lambda reader: reader.log(session), self._read)

    def _read(self, entries: list[LogEntry] | None, error: HermesError | None) -> None:
        self._tell_self(_Loaded(entries=entries or [], error=error))

    def _on_loaded(self, loaded: _Loaded) -> None:
        if loaded.error is not None:
            raise loaded.error
        transcript = Transcript()
        bad = [entry.seq for entry in loaded.entries if isinstance(entry.record, BadRecord)]
        if bad:
            logger.error("session {}: damaged records {} were set aside; the rest is used", self._session.id, bad)
        transcript.extend((e.seq, e.record) for e in loaded.entries if not isinstance(e.record, BadRecord))
        transcript.extend(self._missed or ())
        self._missed = None
        self._transcript = transcript
        if self._session.phase == Phase.RUNNING and self._session.turn is not None and self._work is None:
            self._start_work(transcript, self._session.turn)

    def _remember(self, entries: list[tuple[Seq, Record]]) -> None:
        if self._transcript is not None:
            self._transcript.extend(entries)
        elif self._missed is not None:
            self._missed.extend(entries)

    def _start_work(self, transcript: Transcript, turn: Turn) -> None:
        job = TurnJob(
            session=self._session.id,
            turn=turn.id,
            attempt=turn.attempt,
            messages=tuple(transcript.messages),
            options=turn.options,
        )
        self._work = self._services.turns.start(job, self._report)

    def _report(self, report: TurnReport) -> None:
        self._work = None
        self._tell_self(report)

    def _cancel(self) -> None:
        if self._work is not None:
            self._work.cancel()
            self._work = None

    # ------------------------------------------------------------ the end

    def _passivate(self) -> None:
        if self._session.turn is None and self._missed is None and not self._stash:
            self.stop()
        else:
            self._services.tell_directory(StayedBusy(session=self._session.id))

    def on_stop(self) -> None:
        self._leave()

    def on_failure(
        self,
        exception_type: type[BaseException] | None,  # noqa: ARG002 - pykka's signature
        exception_value: BaseException | None,  # noqa: ARG002
        traceback: TracebackType | None,  # noqa: ARG002
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        """End the work, and give back what was not begun."""
        self._cancel()
        for mail in self._stash or ():
            if isinstance(mail, Post):
                self._give_back(mail, moved=False)
        if self._writing is not None:
            error = OutcomeUnknownError(
                f"session {self._session.id} ended while the message was on its way to disk; "
                "send it again with the same Idempotency-Key, or look at the session's messages first"
            )
            fail(self._writing.post, error)


def fail(post: Post, error: HermesError) -> None:
    """Tell whoever waits for it, if anybody does."""
    if post.reply is not None:
        post.reply.settle(None, error)


def _event_of(report: TurnReport) -> Event:
    if report.failure is not None:
        return TurnErrored(turn=report.turn, attempt=report.attempt, failure=report.failure)
    return TurnSucceeded(
        turn=report.turn,
        attempt=report.attempt,
        text=report.text,
        model=report.model,
        finish_reason=report.finish_reason,
        usage=report.usage,
    )
