"""Session actor: the shell around the pure session machine.

It turns mail into events, asks `step` for the transaction, persists it, and performs its effects. It decides nothing
itself. The base class writes, stashes, retries and loads.
"""

from __future__ import annotations

import asyncio

from loguru import logger

from hermes.actors.kernel.future import LoopFuture
from hermes.actors.kernel.journaled import JournaledActor, LifecycleStage, LoadState, WriteState
from hermes.actors.session.session_effects import give_back, hand_over, opened, perform
from hermes.actors.session.session_mail import (
    Born,
    Granted,
    MayLeave,
    Outdated,
    Passivate,
    Post,
    SessionServices,
    StayedBusy,
    fail,
)
from hermes.actors.session.session_work import SessionWork
from hermes.domain.errors import AlreadySeenError, HermesError, OutcomeUnknownError, RefusedError, UnknownSessionError
from hermes.domain.ids import Seq
from hermes.domain.operations import Append
from hermes.domain.process.process_record import Heartbeat
from hermes.domain.read.explain import last_problem
from hermes.domain.read.live import LiveSession
from hermes.domain.read.transcript import Transcript
from hermes.domain.read.views import ActorView
from hermes.domain.records import BadRecord, LogEntry, Record
from hermes.domain.session.builder import given_up
from hermes.domain.session.jobs import ModelReport, RetryReport, SummaryReport, ToolReport
from hermes.domain.session.machine import open_work, step
from hermes.domain.session.protocol import (
    AnnounceStop,
    BranchOff,
    Event,
    Hold,
    Recover,
    ResetSession,
    StartHeld,
    Step,
    UndoTurns,
)
from hermes.domain.session.request import event_of
from hermes.domain.session.state import Phase, Session, is_pending
from hermes.domain.session.transaction import operations_of
from hermes.domain.session.turn_stop import DELETED
from hermes.domain.turn.submission import Submission
from hermes.domain.values import replace
from hermes.system.crash_point import reach

_NOTHING_INTERRUPTED = Recover()  # open work was handed over by another session


class SessionActor(JournaledActor[Post, Step]):
    __slots__ = (
        "_alongside",
        "_coalesce_timer",
        "_meanwhile",
        "_opening",
        "_recovery",
        "_services",
        "_session",
        "_stopping",
        "_transcript",
        "_work",
    )
    kind = "session"

    def __init__(
        self,
        services: SessionServices,
        session: Session,
        *,
        opening: tuple[Record, ...] = (),
        alongside: tuple[Append, ...] = (),
        recovery: Recover = _NOTHING_INTERRUPTED,
        stopping: AnnounceStop | None = None,
    ) -> None:
        super().__init__(services.journal, LifecycleStage.NEW if opening else LifecycleStage.SETTLED)
        self._services = services
        self._session = session
        self._opening = opening  # first records of a new session, stored together with its first message
        self._alongside = alongside  # other sessions' records in the same transaction
        self._recovery = recovery
        self._stopping = stopping  # set while the daemon stops: the next daemon continues interrupted work
        self._transcript: Transcript | None = None
        self._meanwhile: tuple[tuple[Seq, Record], ...] = ()  # committed while the transcript is loading
        self._work: SessionWork | None = None
        self._coalesce_timer: asyncio.TimerHandle | None = None

    def statistics(self) -> ActorView:
        """Return the usual figures, with the session's phase as state and its last failure."""
        view = super().statistics()
        state = self._session.phase if view.state == "running" else view.state
        return replace(view, state=state, last_error=view.last_error or last_problem(self._session))

    @property
    def phase(self) -> Phase:
        return self._session.phase

    def live(self) -> LiveSession:
        age_s = None if self._work is None else self._work.age_s
        return LiveSession(session=self._session, mailbox=len(self.actor_inbox), step_age_s=age_s)

    # ------------------------------------------------------------ mail

    def on_start(self) -> None:
        session = self._session
        if self.stage is not LifecycleStage.NEW:
            self._services.heads[session.id] = session
        if not is_pending(session):
            return
        handed_over = session.turn is not None or bool(session.resume_reason)
        if self._recovery.cause or not handed_over:
            self.stage = LifecycleStage.RECOVERING
            self._process(Post(event=self._recovery))
        if self.write_state is WriteState.READY:
            self.on_ready()

    def handle(self, message: object) -> None:
        match message:
            case Post():
                self._process(message)
            case ModelReport() | RetryReport() | ToolReport() | SummaryReport():
                self._process(Post(event=message))
            case Heartbeat():
                self._services.resets.receive(message)
            case Passivate():
                self._passivate()
            case _:
                super().handle(message)

    def _process(self, post: Post) -> None:
        """Ask the machine what follows from this event, and persist it."""
        services, now = self._services, self._services.clock()
        if isinstance(post.event, AnnounceStop):
            self._stopping = post.event
        elif self._stopping and isinstance(post.event, Recover):
            return  # the next daemon recovers open work
        post = self._with_due_reset(post, now)
        event = self._event_of(post, now)
        if event is None:
            return
        result = step(self._session, event, now, services.limits(), stopping=self._stopping, due=services.resets.due)
        if not result.records and result.child is None:
            self._perform(post, result)
            return
        if self.stage is LifecycleStage.NEW:
            records, bind = (*self._opening, *result.records), result.bind or result.session.key
            result = replace(result, records=records, bind=bind)
        followups = services.was_reset.outgoing(self._session.id, event) if isinstance(event, ResetSession) else ()
        self.persist(post, result, (*operations_of(result, self.journal.epoch), *self._alongside, *followups))

    def _with_due_reset(self, post: Post, now: float) -> Post:
        """Return the reset that is due before this message, and stash the message. Without one, return the post."""
        if not isinstance(post.event, Submission) or post.judged or post.event.source.automatic:
            return post
        reset = self._services.resets.reset_now(self._session, now)
        if reset is None:
            return post
        self.stash(replace(post, judged=True))
        return Post(event=reset, reply=LoopFuture())  # awaited, so that it is not retried if the disk is full

    def _event_of(self, post: Post, now: float) -> Event | None:
        """Return the event of a post. None: it was refused, or it is stashed until the transcript is loaded."""
        match post.event:
            case UndoTurns() | BranchOff() | SummaryReport() as request:
                if self._transcript is None:
                    self._load_transcript()
                    self.stash(post)
                    return None
                try:
                    return event_of(request, self._session, self._transcript, lambda: self._services.new_session(now))
                except RefusedError as error:
                    fail(post, error)
                    return None
            case AnnounceStop() as stop:
                return replace(stop, written="" if self._work is None else self._work.written)
            case event:
                return event

    # ------------------------------------------------------------ outcome of a write

    def on_durable(self, mail: Post, step: Step) -> None:  # noqa: ARG002 - the hook's signature
        if step.granted:
            self._services.tell_directory(Granted(rules=frozenset(step.granted)))
        if step.outbox:
            self._services.deliver(step.outbox)
        if step.children:
            self._services.start_children(step.children)

    def on_created(self) -> None:
        self._services.tell_directory(Born(session=self._session.id))
        self._opening = self._alongside = ()
        self._services.hub.publish(opened(self._session))

    def on_persisted(self, mail: Post, step: Step) -> None:
        self._session = self._services.heads[step.session.id] = step.session
        self._add_to_transcript(step)
        self._perform(mail, step)
        if isinstance(mail.event, ResetSession):
            self._services.was_reset(self._session, mail.event)
            self._services.tell_directory(MayLeave(session=self._session.id))  # perhaps activated only for this

    def is_awaited(self, mail: Post) -> bool:
        return mail.reply is not None

    def on_refused(self, mail: Post, error: HermesError) -> None:
        fail(mail, error)
        if self.stage is LifecycleStage.NEW and isinstance(error, AlreadySeenError):
            self._services.tell_directory(MayLeave(session=self._session.id))

    def on_conflict(self, mail: Post, error: HermesError) -> bool:
        """Another writer changed or deleted the session, or was first to continue the same conversation."""
        give_back(mail, self._session.id, self._services, moved=True)
        if self.stage is LifecycleStage.NEW:
            return True
        if isinstance(error, UnknownSessionError):
            for event in given_up(self._session, DELETED):
                self._services.hub.publish(event)
        self._services.tell_directory(Outdated(session=self._session.id))
        return False

    # ------------------------------------------------------------ effects

    def _perform(self, post: Post, step: Step) -> None:
        if isinstance(post.event, Recover):
            self.settle()
        answered = False
        for effect in step.effects:
            if isinstance(effect, Hold):
                self._restart_coalesce_timer(effect.wait_s)
            else:
                answered = perform(effect, post, self._session.id, self._services) or answered
        if step.child is not None:
            hand_over(self._session, step.child, self._services)
        if post.reply is not None and not answered:
            post.reply.settle(self._session if step.child is None else step.child.session)

    def _restart_coalesce_timer(self, wait_s: float) -> None:
        if self._coalesce_timer is not None:
            self._coalesce_timer.cancel()
        self._coalesce_timer = self.tell_later(wait_s, Post(event=StartHeld()))

    # ------------------------------------------------------------ work and transcript

    def on_ready(self) -> None:
        """Start the work that the state asks for, and cancel the rest."""
        if self.stage is LifecycleStage.RECOVERING:
            return
        limits = self._services.limits()
        wanted = open_work(self._session, limits)
        if wanted and self._transcript is None:
            self._load_transcript()
        elif wanted:
            assert self._transcript is not None
            if self._work is None:
                self._work = SessionWork(self._services.agent, self.tell_self)
            self._work.follow(wanted, self._session, self._transcript, limits.granted)
        elif self._work is not None:
            self._work.cancel()
            self._work = None

    def _load_transcript(self) -> None:
        session = self._session.id
        self.load(lambda reader: reader.log(session))

    def on_loaded(self, found: list[LogEntry] | None) -> None:
        entries = found or []
        bad = [entry.seq for entry in entries if isinstance(entry.record, BadRecord)]
        if bad:
            logger.error("session {}: skipping damaged records {}", self._session.id, bad)
        transcript = Transcript()
        transcript.extend((e.seq, e.record) for e in entries if not isinstance(e.record, BadRecord))
        transcript.extend(self._meanwhile)
        self._meanwhile = ()
        self._transcript = transcript

    def _add_to_transcript(self, step: Step) -> None:
        if self._transcript is None and self.load_state is not LoadState.LOADING:
            return
        first = step.session.next_seq - len(step.records)
        entries = [(Seq(first + index), record) for index, record in enumerate(step.records)]
        if self._transcript is not None:
            self._transcript.extend(entries)
        else:
            self._meanwhile = (*self._meanwhile, *entries)

    # ------------------------------------------------------------ the end

    def _passivate(self) -> None:
        if is_pending(self._session):
            self._services.tell_directory(StayedBusy(session=self._session.id))
        elif self.load_state is LoadState.LOADING:
            # It leaves memory once the transcript is loaded. StayedBusy would return mail repeatedly that an
            # ended or suspended session cannot take.
            self.stash(Passivate())
        else:
            reach("session: about to leave memory")
            self.stop()

    def on_end(self) -> None:
        """Cancel the work, and give back mail that was not handled."""
        if self._work is not None:
            self._work.cancel()
        for mail in self.stashed:
            if isinstance(mail, Post):
                give_back(mail, self._session.id, self._services, moved=False)
        if (post := self.unfinished_write) is not None:
            error = OutcomeUnknownError(
                f"session {self._session.id} ended while the message was on its way to disk; "
                "send it again with the same Idempotency-Key, or look at the session's messages first"
            )
            fail(post, error)
