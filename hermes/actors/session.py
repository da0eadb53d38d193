"""The session actor: a thin shell around the pure machine.

It takes one event at a time, writes what the machine decides, and acts when the journal says it is on disk; mail
that comes in between waits its turn. So what it holds in memory is never ahead of the disk, and a refused write
leaves nothing to undo. It reads no clock and no file, and waits for nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import TracebackType
from typing import TypeAlias, assert_never

from loguru import logger

from hermes.actors.kernel.actor import LoopActor
from hermes.actors.kernel.future import LoopFuture
from hermes.actors.kernel.ref import ActorDeadError
from hermes.actors.session_mail import (
    Born,
    Granted,
    MayLeave,
    Outdated,
    Passivate,
    Post,
    Returned,
    SessionServices,
    StayedBusy,
    Succeeded,
    fail,
)
from hermes.actors.session_work import SessionWork
from hermes.domain.access.grants import facts_of, granted_by
from hermes.domain.errors import (
    AlreadySeenError,
    HermesError,
    OutcomeUnknownError,
    RefusedError,
    SequenceConflictError,
    StorageFailedError,
    StorageFullError,
    UnknownSessionError,
)
from hermes.domain.events import PhaseChanged, TurnAccepted
from hermes.domain.operations import Append, Enqueue, Operation, See, SetDue
from hermes.domain.outbox import outgoing_of
from hermes.domain.read.explain import last_problem
from hermes.domain.read.transcript import Transcript
from hermes.domain.read.views import ActorView
from hermes.domain.records import BadRecord, LogEntry, Record
from hermes.domain.session.builder import given_up
from hermes.domain.session.jobs import ModelReport, RetryReport, SummaryReport, ToolReport
from hermes.domain.session.machine import DELETED, open_work, step, step_in_a_stop
from hermes.domain.session.protocol import (
    Accept,
    AnnounceStop,
    BranchOff,
    Deliver,
    Effect,
    Event,
    Hold,
    Publish,
    Recover,
    Refuse,
    Request,
    Reroute,
    ResetSession,
    StartHeld,
    Step,
    SuccessorSession,
    UndoTurns,
)
from hermes.domain.session.report import Report, event_of
from hermes.domain.session.request import branch_of, undo_of
from hermes.domain.session.state import is_pending
from hermes.domain.submission import Receipt
from hermes.domain.types import Epoch, Phase, Seq, Session
from hermes.domain.usage import tallies_of
from hermes.domain.values import dataclass
from hermes.system.crash_point import reach

RETRY_WRITE_S = 1.0  # how soon a result that found no space on disk is offered again


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


_Mail: TypeAlias = Post | Report | Passivate
_NOTHING_INTERRUPTED = Recover()  # open work was handed over by another session


class SessionActor(LoopActor):
    __slots__ = (
        "_alongside",
        "_missed",
        "_patience",
        "_recovery",
        "_services",
        "_session",
        "_settled",
        "_stash",
        "_stopping",
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
        recovery: Recover = _NOTHING_INTERRUPTED,
        stopping: AnnounceStop | None = None,
    ) -> None:
        super().__init__()
        self._services = services
        self._session = session
        self._unwritten = unwritten  # a new session's first record, stored together with its first message
        self._alongside = alongside  # what must be stored in the same transaction
        self._recovery = recovery
        self._stopping = stopping  # set while the daemon stops: interrupted work is left to the next daemon
        self._settled = True  # what the state says is going on is so; not before a recovery is on disk
        self._writing: _Writing | None = None
        self._stash: list[_Mail] | None = None
        self._transcript: Transcript | None = None
        self._missed: list[tuple[Seq, Record]] | None = None  # committed while the transcript is being loaded
        self._work: SessionWork | None = None
        self._patience: asyncio.TimerHandle | None = None  # with a message whose rest is probably on its way

    def statistics(self) -> ActorView:
        """With the session's phase for a state, and its last failure: that is what an operator looks for."""
        view = super().statistics()
        state = self._session.phase if view.state == "running" else view.state
        return replace(view, state=state, last_error=view.last_error or last_problem(self._session))

    @property
    def phase(self) -> Phase:
        return self._session.phase

    # ------------------------------------------------------------ mail

    def on_start(self) -> None:
        if not is_pending(self._session):
            return
        announced = bool(self._session.resume_reason)  # to its parent, a moment ago: what waits, waits on
        if self._recovery.cause or (self._session.turn is None and not announced):
            self._settled = False
            self._take(Post(event=self._recovery))
        self._follow()

    def on_receive(self, message: object) -> None:
        match message:
            case Post() if self._writing is None:
                self._take(message)
            case _Committed():
                self._on_committed(message)
            case _Loaded():
                self._on_loaded(message)
            case Post() | ModelReport() | RetryReport() | ToolReport() | SummaryReport() | Passivate() if (
                self._writing is not None
            ):
                self._put_off(message)
            case ModelReport() | RetryReport() | ToolReport() | SummaryReport():
                self._take(Post(event=message))
            case Passivate():
                self._passivate()
            case _:
                super().on_receive(message)

    def _put_off(self, mail: _Mail) -> None:
        if self._stash is None:
            self._stash = []
        self._stash.append(mail)

    def _take(self, post: Post) -> None:
        services = self._services
        if isinstance(post.event, AnnounceStop):
            self._stopping = post.event
        elif self._stopping and isinstance(post.event, Recover):
            return  # it came back, or found space, when the stop had come: the next daemon takes up what is open
        if isinstance(post.event, Deliver) and not post.judged and not post.event.source.automatic:
            post = self._judged(post)
        now = services.clock()
        event = self._event_of(post, now)
        if event is None:
            return
        result = self._step(event, now)
        if not result.records and result.child is None:
            self._settled = self._settled or isinstance(event, Recover)
            self._perform(post, result)
            return
        records = (*self._unwritten, *result.records)
        outgoing = services.was_reset.outgoing(self._session.id, event) if isinstance(event, ResetSession) else ()
        services.journal.commit((*self._operations(result, records), *self._alongside, *outgoing), self._wrote)
        self._writing = _Writing(post=post, step=result, records=records)

    def _step(self, event: Event, now: float) -> Step:
        limits = self._services.limits()
        if self._stopping is not None:
            return step_in_a_stop(self._session, event, now, limits, self._stopping)
        return step(self._session, event, now, limits)

    def _judged(self, post: Post) -> Post:
        """The message, or the reset that goes before it; then the message waits, and goes on elsewhere."""
        reset = self._services.resets.reset_now(self._session)
        if reset is None:
            return post
        self._put_off(replace(post, judged=True))
        return Post(event=reset, reply=LoopFuture())  # to nobody: it is not tried again if it cannot be stored

    def _operations(self, result: Step, records: tuple[Record, ...]) -> list[Operation]:
        epoch = self._services.journal.epoch
        operations: list[Operation] = []
        if records:
            append = Append(
                session=self._session.id,
                expected_seq=Seq(result.session.next_seq - len(records)),
                epoch=epoch,
                records=records,
                head=result.session,
                pending=is_pending(result.session),
                bind=result.bind or (result.session.key if self._unwritten else None),
                seen=result.seen,
                due=self._services.resets.due(result.session),
            )
            operations += [
                append,
                *(See(seen=replace(result.seen, key=key)) for key in result.also if result.seen is not None),
                *tallies_of(result.session, records, self._session.turn),
                *facts_of(granted_by(self._session, records)),
                *(Enqueue(outgoing=outgoing) for outgoing in outgoing_of(self._session, records) if outgoing.final),
            ]
        elif result.child is not None:  # refused as well if this session was deleted, or is not what it was
            session = self._session
            due = self._services.resets.due(session)
            operations.append(SetDue(session=session.id, expected_seq=session.next_seq, due=due))
        if (child := result.child) is not None:
            due = self._services.resets.due(child.session)
            operations += [_opening(child, epoch, due), *tallies_of(child.session, child.records)]
        return operations

    def _event_of(self, post: Post, now: float) -> Event | None:
        """What has happened. None: that takes the transcript, which is being loaded, or it was refused."""
        match post.event:
            case UndoTurns() | BranchOff() as request:
                return self._requested(request, post, now)
            case ModelReport() | RetryReport() | ToolReport() | SummaryReport() as report:
                return event_of(report, self._session, self._transcript, lambda: self._services.new_session(now))
            case AnnounceStop() as stop:
                return replace(stop, written="" if self._work is None else self._work.written)
            case event:
                return event

    def _requested(self, request: Request, post: Post, now: float) -> Event | None:
        if self._transcript is None:
            self._load()
            self._put_off(post)
            return None
        try:
            if isinstance(request, UndoTurns):
                return undo_of(request, self._session, self._transcript)
            return branch_of(request, self._session, self._transcript, self._services.new_session(now))
        except RefusedError as error:
            fail(post, error)
        return None

    def _wrote(self, error: HermesError | None) -> None:
        if error is None:
            self._tell_others()
        self._tell_self(_Committed(error=error))

    def _tell_others(self) -> None:
        """What is on disk now counts for them, also if this actor ends before it hears of it."""
        assert self._writing is not None
        records = self._writing.records
        if rules := granted_by(self._session, records):
            self._services.tell_directory(Granted(rules=frozenset(rules)))
        if outgoing := outgoing_of(self._session, records):
            self._services.deliver(outgoing)

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
            if self._refused(writing.post, committed.error):
                return
        else:
            first = Seq(writing.step.session.next_seq - len(writing.records))
            if self._unwritten:
                self._services.tell_directory(Born(session=self._session.id))
            self._unwritten = self._alongside = ()
            self._session = writing.step.session
            self._remember([(Seq(first + index), record) for index, record in enumerate(writing.records)])
            self._settled = self._settled or isinstance(writing.post.event, Recover)
            self._perform(writing.post, writing.step)
            if isinstance(writing.post.event, ResetSession):
                self._services.was_reset(self._session, writing.post.event)
                self._services.tell_directory(MayLeave(session=self._session.id))  # it may have come for this only
        self._follow()
        self._unstash()

    def _refused(self, post: Post, error: HermesError) -> bool:
        """Whether the session does nothing more: it is outdated and leaves, or the store is gone."""
        match error:
            case SequenceConflictError() | UnknownSessionError():
                # Somebody else wrote to this session or deleted it, or was first to continue the same conversation.
                # The message is not to blame: it goes back, and finds whoever is right about the session.
                self._give_back(post, moved=True)
                if not self._unwritten:
                    self._tell_if_deleted(error)
                    self._services.tell_directory(Outdated(session=self._session.id))
                    self.stop()
                    return True
            case AlreadySeenError() if self._unwritten:
                fail(post, error)
                self._services.tell_directory(MayLeave(session=self._session.id))
            case StorageFullError() if post.reply is None:
                # What came out must not be lost: it is offered again until there is space.
                logger.warning("session {}: {}; it is tried again every second", self._session.id, error)
                self.tell_later(RETRY_WRITE_S, post)
            case StorageFailedError() if post.reply is None:
                return True  # the daemon is about to end, and the next one starts from what is stored
            case _ if post.reply is None:
                raise error
            case _:
                fail(post, error)
        return False

    def _tell_if_deleted(self, error: HermesError) -> None:
        if isinstance(error, UnknownSessionError):
            for event in given_up(self._session, DELETED):
                self._services.hub.publish(event)

    def _give_back(self, post: Post, *, moved: bool) -> None:
        if post.reply is not None:  # else it is its own: whoever comes after it starts from what is stored
            self._services.tell_directory(Returned(session=self._session.id, post=post, moved=moved))

    def _unstash(self) -> None:
        """Take up what was put off, as far as nothing holds it up again."""
        stash = self._stash or []
        self._stash = []  # what is put off again comes before what is left
        while stash and self._writing is None:
            self.on_receive(stash.pop(0))
        self._stash = [*self._stash, *stash] or None

    # ------------------------------------------------------------ effects

    def _perform(self, post: Post, result: Step) -> None:
        answered = False
        for effect in result.effects:
            answered = self._do(effect, post) or answered
        if result.child is not None:
            self._succeed(result.child)
        if post.reply is not None and not answered:
            post.reply.settle(self._session if result.child is None else result.child.session)

    def _do(self, effect: Effect, post: Post) -> bool:
        """Do it; True if that answered whoever waits."""
        match effect:
            case Accept():
                self._accept(effect, post)
                return True
            case Hold():
                if self._patience is not None:
                    self._patience.cancel()
                self._patience = self.tell_later(effect.wait_s, Post(event=StartHeld()))
            case Refuse():
                fail(post, effect.error)
                return True
            case Reroute():
                self._give_back(post, moved=True)
                return True
            case Publish():
                self._publish(effect)
            case _:
                assert_never(effect)
        return False

    def _accept(self, accept: Accept, post: Post) -> None:
        session = self._session.id
        if post.reply is not None:
            post.reply.settle(
                Receipt(
                    session=session,
                    turn=accept.turn,
                    position=accept.position,
                    notice=post.notice,
                    handling=accept.handling,
                    into=accept.into,
                    opened=accept.opened,
                )
            )
        self._services.hub.publish(TurnAccepted(session=session, turn=accept.turn, position=accept.position))

    def _publish(self, effect: Publish) -> None:
        event = effect.event
        if isinstance(event, PhaseChanged):
            logger.info("session {} is {}: {}", event.session, event.phase, event.reason)
        self._services.hub.publish(event)

    def _succeed(self, child: SuccessorSession) -> None:
        logger.info("session {} goes on from {}: {}", child.session.id, self._session.id, child.session.reason)
        if self._session.phase == Phase.ENDED:
            self._services.tell_directory(Succeeded(session=self._session.id, child=child.session))

    # ------------------------------------------------------------ the work

    def _follow(self) -> None:
        """Have going on what is to be going on. While something is being written, that is about to change."""
        if self._writing is not None or not self._settled:
            return
        wanted = open_work(self._session, self._services.limits())
        if wanted and self._transcript is None:
            self._load()
        elif wanted:
            assert self._transcript is not None
            if self._work is None:
                self._work = SessionWork(self._services.agent, self._tell_self)
            self._work.follow(wanted, self._session, self._transcript, self._services.limits().granted)
        elif self._work is not None:
            self._work.cancel()
            self._work = None

    # ------------------------------------------------------------ the transcript

    def _load(self) -> None:
        if self._missed is None:
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
        self._follow()
        self._unstash()

    def _remember(self, entries: list[tuple[Seq, Record]]) -> None:
        if self._transcript is not None:
            self._transcript.extend(entries)
        elif self._missed is not None:
            self._missed.extend(entries)

    # ------------------------------------------------------------ the end

    def _passivate(self) -> None:
        if is_pending(self._session):
            self._services.tell_directory(StayedBusy(session=self._session.id))
        elif self._missed is not None:
            # It leaves when the transcript is there. To say that it stays would bring back, at once and over and
            # over, mail that it cannot take if it has ended or is suspended.
            self._put_off(Passivate())
        else:
            reach("session: about to leave memory")
            self.stop()

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
        if self._work is not None:
            self._work.cancel()
        for mail in self._stash or ():
            if isinstance(mail, Post):
                self._give_back(mail, moved=False)
        if self._writing is not None:
            error = OutcomeUnknownError(
                f"session {self._session.id} ended while the message was on its way to disk; "
                "send it again with the same Idempotency-Key, or look at the session's messages first"
            )
            fail(self._writing.post, error)


def _opening(child: SuccessorSession, epoch: Epoch, due: float | None) -> Append:
    return Append(
        session=child.session.id,
        expected_seq=Seq(0),
        epoch=epoch,
        records=child.records,
        head=child.session,
        pending=is_pending(child.session),
        bind=child.session.key if child.move_key else None,
        due=due,
    )
