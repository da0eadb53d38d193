"""State machine of a session, as pure functions without clock, disk or event loop.

`step(session, event, now)` returns the next state, the records to store and the effects to perform afterwards.
`open_work(session)` returns the work that must run meanwhile. This module handles messages, turns and the lifecycle;
tool calls and compression have modules of their own.
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any, assert_never

from hermes.domain.access.permission import may_answer, needs_approver, rules_of
from hermes.domain.access.question import SHOW, waiting_call
from hermes.domain.end_cause import was_compressed
from hermes.domain.errors import QueueFullError
from hermes.domain.events import Notice, TurnAnswered
from hermes.domain.records import (
    Amended,
    Continued,
    Ended,
    MarkedResumePending,
    MessageReceived,
    ModelReplied,
    ModelRetried,
    Preferred,
    PromptBuilt,
    Record,
    ResetBlocked,
    Resumed,
    Suspended,
    TurnFinished,
    TurnInterrupted,
    Undone,
)
from hermes.domain.session import calls, compression
from hermes.domain.session.builder import (
    change_phase,
    give_up,
    given_up,
    open_turns,
    publishing,
    refuse,
    refuse_with,
    start,
    start_next,
    suspension,
    then,
    told,
)
from hermes.domain.session.jobs import ModelReport, RetryReport, ToolReport
from hermes.domain.session.protocol import (
    Accept,
    AnnounceStop,
    Answer,
    Begin,
    Branch,
    Compress,
    EndSession,
    Event,
    Hold,
    ModelCallWork,
    NoteBlocked,
    Recover,
    Refuse,
    Reroute,
    ResetSession,
    Resume,
    Rewrite,
    SetPreference,
    StartHeld,
    Step,
    StopTurn,
    Summarised,
    SummaryFailed,
    SummaryWork,
    Suspend,
    Task,
    ToolCallWork,
    TurnLimits,
    Undo,
)
from hermes.domain.session.reason import NEW_MESSAGE, interruption_reason, stop_message, with_person
from hermes.domain.session.state import announced_cause, interruption_cause, is_pending
from hermes.domain.session.transaction import Due, complete, never_due
from hermes.domain.session.turn_role import role_of_turn
from hermes.domain.submission import Submission
from hermes.domain.types import (
    Busy,
    Call,
    CallOutcome,
    CallState,
    CompressionEnd,
    EndCause,
    Failure,
    FailureKind,
    Handling,
    HoldCause,
    InterruptionCause,
    Phase,
    Preferences,
    Seen,
    Session,
    StopCause,
    SuspendCause,
    Turn,
    TurnId,
)

MAX_WRITTEN = 8_000  # characters that are kept of an answer which a stop cut off
SUSPEND_AFTER = 3  # interruptions in a row without one finished turn
DELETED = Failure(
    kind=FailureKind.CANCELLED,
    message=stop_message(StopCause.SESSION_DELETED, ""),
    stop=StopCause.SESSION_DELETED,
)
_LIMITS = TurnLimits()
_PREFERENCES = tuple(field.name for field in fields(Preferences))


def step(
    session: Session,
    event: Event,
    now: float,
    limits: TurnLimits = _LIMITS,
    *,
    stopping: AnnounceStop | None = None,
    due: Due = never_due,
) -> Step:
    """Return the whole transaction that the event leads to, and the effects to perform once it is on disk.

    `stopping` is set while the daemon stops; `due`: returns when to check a session for a reset.
    """
    if stopping is not None:
        return complete(session, _decide_in_a_stop(session, event, now, limits, stopping), now, due)
    return complete(session, _decide(session, event, now, limits), now, due)


def _decide(session: Session, event: Event, now: float, limits: TurnLimits) -> Step:  # noqa: C901, PLR0912
    match event:
        case Submission():
            return _deliver(session, event, now, limits)
        case StartHeld():
            return start_next(Step(session=session), now) if _is_open(session) else Step(session=session)
        case Rewrite():
            return _rewrite(session, event, now)
        case Begin():
            return _begin(session, event, now)
        case StopTurn():
            return _stop_turn(session, event, now)
        case ModelReport(failure=None):
            return _model_answered(session, event, now, limits)
        case ModelReport():
            return _model_failed(session, event, now)
        case RetryReport():
            return _model_retried(session, event, now)
        case ToolReport():
            return calls.tool_returned(session, event, now, limits)
        case Answer():
            return calls.answer(session, event, now, limits)
        case AnnounceStop():
            return _announce_stop(session, event, now)
        case Recover():
            return _recover(session, event, now, limits)
        case Suspend():
            return _suspend(session, event, now)
        case Resume():
            return _resume(session, event, now, limits)
        case EndSession():
            return _end(session, event, now)
        case ResetSession():
            return _reset(session, event, now)
        case NoteBlocked():
            return _note_blocked(session, event, now)
        case SetPreference():
            return _prefer(session, event, now)
        case Undo():
            return _undo(session, event, now, limits)
        case Compress():
            return compression.on_request(session, event, now)
        case Summarised():
            return compression.summarised(session, event, now)
        case SummaryFailed():
            return compression.failed(session, event, now)
        case Branch():
            return compression.branch(session, event, now)
        case _:
            assert_never(event)


def _decide_in_a_stop(session: Session, event: Event, now: float, limits: TurnLimits, stop: AnnounceStop) -> Step:
    """Decide as usual, and mark the work in flight as interrupted in the same transaction."""
    before = _decide(session, stop, now, limits)
    taken = _decide(before.session, event, now, limits)
    after = _decide(taken.session, stop, now, limits)
    return replace(
        taken,
        session=after.session,
        records=(*before.records, *taken.records, *after.records),
        effects=(*before.effects, *taken.effects, *after.effects),
    )


def open_work(session: Session, limits: TurnLimits = _LIMITS) -> tuple[Task, ...]:
    """Return exactly the work that must run while the session is in this state."""
    if session.phase in (Phase.SUSPENDED, Phase.ENDED):
        return ()
    if session.compressing:
        return (SummaryWork(reason=session.compressing, focus=session.compressing_focus),)
    turn = session.turn
    if turn is None or session.phase != Phase.RUNNING:
        return ()
    if turn.calls:
        started = (call.id for call in turn.calls if call.state is CallState.STARTED)
        return tuple(ToolCallWork(turn=turn.id, attempt=turn.attempt, call=call) for call in started)
    last = turn.replies >= limits.max_replies
    return (ModelCallWork(turn=turn.id, attempt=turn.attempt, replies=turn.replies, last=last),)


# ---------------------------------------------------------------- messages


def _begin(session: Session, event: Begin, now: float) -> Step:
    if not _is_open(session):
        return Step(session=session, effects=(Reroute(),))
    preferences = replace(session.preferences, title=event.title or session.preferences.title)
    return then(Step(session=session), Preferred(at=now, preferences=preferences, reason="it was begun"))


def _deliver(session: Session, event: Submission, now: float, limits: TurnLimits) -> Step:
    if session.phase in (Phase.SUSPENDED, Phase.ENDED):
        return Step(session=session, effects=(Reroute(),))
    if any(turn.id == event.joins for turn in session.queue):
        return _join(session, event, now)
    held = session.turn if session.phase == Phase.RESUME_PENDING else None
    if held is not None and not event.source.automatic:  # the end of a process is no person's word: it waits, too
        return _deliver_held(session, held, event, now, limits)
    if (asking := waiting_call(session)) is not None and (said := _answer_in(event, asking, session)):
        if not may_answer(event.source.standing, rules_of(asking), said):
            return refuse_with(session, needs_approver(session.id))
        if calls.is_unseen(asking, said):
            return refuse(session, calls.NOT_SEEN)
        merged = calls.merge_answer(_received(session, event, now, Handling.ANSWER), event.turn, now)
        if said == SHOW and asking.cut:
            return calls.show_whole(merged, asking, now)
        return calls.advance(calls.resolve(merged, asking, said, event.source, now), now, limits)
    if len(session.queue) >= limits.max_queue:
        return _too_many(session, limits)
    handling = _handling(session, event, limits)
    accepted = _received(session, event, now, handling)
    if handling is Handling.INTERRUPTING:
        stop = StopTurn(reason=NEW_MESSAGE, by=event.source.place)
        accepted = _stopped(accepted, stop, StopCause.NEW_MESSAGE, now)
    return _start_or_hold(accepted, event, now)


def _join(session: Session, event: Submission, now: float) -> Step:
    """Join the rest of a queued message; it gets no turn of its own."""
    assert event.joins is not None
    ahead = [turn.id for turn in open_turns(session)].index(event.joins)
    accept = Accept(turn=event.joins, position=ahead, handling=Handling.JOINED)
    amended = Amended(
        at=now, turn=event.joins, messages=event.messages, inbound=event.inbound, role=event.source.standing
    )
    joined = then(Step(session=session), amended, effects=(accept,))
    return _start_or_hold(replace(joined, seen=_seen(session, event, event.joins, now), also=event.also), event, now)


def _start_or_hold(accepted: Step, event: Submission, now: float) -> Step:
    if event.more_s > 0 and accepted.session.turn is None:
        return replace(accepted, effects=(*accepted.effects, Hold(wait_s=event.more_s)))
    return start_next(accepted, now)


def _rewrite(session: Session, event: Rewrite, now: float) -> Step:
    waiting = next((turn for turn in session.queue if turn.place == event.place), None)
    if waiting is None:
        return refuse(session, "that message does not wait any more: it was answered, or is being answered")
    return then(
        Step(session=session),
        Amended(at=now, turn=waiting.id, messages=(event.message,), replaces=True, role=event.role),
    )


def _too_many(session: Session, limits: TurnLimits) -> Step:
    many = f"{limits.max_queue} messages already wait in session {session.id}"
    return Step(session=session, effects=(Refuse(error=QueueFullError(f"{many}; nothing was stored, try again")),))


def _deliver_held(session: Session, turn: Turn, event: Submission, now: float, limits: TurnLimits) -> Step:
    """Continue a held turn; the person's message becomes part of it.

    Messages that were queued before go first.
    """
    if len(session.queue) >= limits.max_queue:
        return _too_many(session, limits)
    joins = not session.queue and _may_steer(session, event)
    received = _received(session, event, now, Handling.STEERING if joins else Handling.QUEUED)
    return _go_on(received, turn, interruption_cause(session), now, limits)


def _handling(session: Session, event: Submission, limits: TurnLimits) -> Handling:
    if session.turn is None:
        return Handling.QUEUED if session.queue or session.compressing else Handling.STARTED
    wish = event.busy or session.preferences.busy or limits.busy
    if wish == Busy.STEER:
        return Handling.STEERING if _may_steer(session, event) else Handling.QUEUED
    return Handling.INTERRUPTING if wish == Busy.INTERRUPT and not session.compressing else Handling.QUEUED


def _may_steer(session: Session, event: Submission) -> bool:
    """Return whether a message may steer. A lower role must wait, since it would lower the role of the turn."""
    return event.source.standing.includes(role_of_turn(session))


def _received(session: Session, event: Submission, now: float, handling: Handling) -> Step:
    opening = event.opening if not session.messages else ()
    received = MessageReceived(
        at=now,
        turn=event.turn,
        messages=(*opening, *event.messages),
        source=event.source,
        options=event.options,
        steer=handling is Handling.STEERING,
        inbound=event.inbound,
    )
    ahead = session.turn is not None and handling is not Handling.INTERRUPTING
    first = 0 if handling is Handling.ANSWER else len(session.queue) + ahead
    into = session.turn.id if session.turn is not None and handling is Handling.ANSWER else None
    accept = Accept(turn=event.turn, position=first, handling=handling, into=into, opened=bool(opening))
    accepted = then(Step(session=session), received, effects=(accept,))
    return replace(accepted, seen=_seen(session, event, event.turn, now), also=event.also)


def _seen(session: Session, event: Submission, turn: TurnId, now: float) -> Seen | None:
    if not event.inbound:
        return None
    return Seen(key=event.inbound, session=session.id, turn=turn, fingerprint=event.fingerprint, at=now)


def _answer_in(event: Submission, asking: Call, session: Session) -> str:
    """Return the answer that a plain message gives to a waiting call; empty if it is not an answer."""
    if event.busy or not event.may_answer:
        return ""
    content = json.loads(event.messages[-1]).get("content")
    if not isinstance(content, str) or not calls.is_asked(session, asking, event.source):
        return ""
    return calls.read_answer(asking, event.said or content)


# ---------------------------------------------------------------- what the model says


def _model_answered(session: Session, event: ModelReport, now: float, limits: TurnLimits) -> Step:
    if not _is_current(session, event.turn, event.attempt, event.replies):
        return Step(session=session)
    before = Step(session=session)
    if event.prompt is not None and not session.prompted:
        before = then(before, PromptBuilt(at=now, message=event.prompt))
    if event.calls:
        replied = ModelReplied(
            at=now,
            turn=event.turn,
            message=event.message,
            calls=event.calls,
            model=event.model,
            usage=event.usage,
            context_tokens=event.context_tokens,
            waited_s=event.waited_s,
        )
        return calls.advance(then(before, replied), now, limits)
    finished = _finish(before, event, now)
    return start_next(compression.when_full(finished, now) if event.context_full else finished, now)


def _finish(before: Step, event: ModelReport, now: float) -> Step:
    session, turn = before.session, before.session.turn
    assert turn is not None
    finished = TurnFinished(
        at=now,
        turn=event.turn,
        message=event.message,
        model=event.model,
        finish_reason=event.finish_reason,
        usage=event.usage,
        context_tokens=event.context_tokens,
        waited_s=event.waited_s,
    )
    answers = (
        TurnAnswered(
            session=session.id,
            turn=waiting,
            text=event.text,
            model=event.model,
            finish_reason=event.finish_reason,
            usage=turn.usage + event.usage,
        )
        for waiting in told(session, event.turn)
    )
    return publishing(then(before, finished), *answers)


def _model_failed(session: Session, event: ModelReport, now: float) -> Step:
    if not _is_current(session, event.turn, event.attempt, event.replies):
        return Step(session=session)
    assert event.failure is not None
    if event.failure.kind is FailureKind.CONTEXT_OVERFLOW:
        return compression.on_overflow(session, now)
    return start_next(give_up(Step(session=session), event.turn, event.failure, now), now)


def _model_retried(session: Session, event: RetryReport, now: float) -> Step:
    if not _is_current(session, event.turn, event.attempt, event.replies):
        return Step(session=session)
    retried = ModelRetried(
        at=now,
        turn=event.turn,
        model=event.model,
        failure=event.failure,
        tries=event.tries,
        delay_s=event.delay_s,
    )
    return then(Step(session=session), retried)


def _is_current(session: Session, turn: TurnId, attempt: int, replies: int) -> bool:
    """Return whether a report belongs to the current attempt. Late reports are ignored."""
    current = session.turn
    if current is None or session.phase != Phase.RUNNING or session.compressing:
        return False
    return (current.id, current.attempt, current.replies) == (turn, attempt, replies)


# ---------------------------------------------------------------- stops


def _stop_turn(session: Session, event: StopTurn, now: float) -> Step:
    if session.turn is None and session.compressing and event.turn is None:
        return start_next(
            compression.called_off(Step(session=session), event.reason, CompressionEnd.STOPPED, now), now
        )
    if session.turn is not None and event.turn in (None, session.turn.id):
        stopped = _stopped(Step(session=session), event, StopCause.ASKED, now)
        return stopped if session.phase == Phase.SUSPENDED else start_next(stopped, now)
    if any(turn.id == event.turn for turn in session.queue):
        assert event.turn is not None
        return give_up(Step(session=session), event.turn, _cancelled(event, StopCause.ASKED), now, by=event.by)
    return Step(session=session)


def _stopped(before: Step, event: StopTurn, cause: StopCause, now: float) -> Step:
    """End the turn in flight and its calls."""
    turn = before.session.turn
    assert turn is not None
    closed = calls.close_all(before, CallOutcome.STOPPED, cause, now)
    closed = compression.called_off(closed, event.reason, CompressionEnd.STOPPED, now)
    return give_up(closed, turn.id, _cancelled(event, cause), now, by=event.by)


def _cancelled(event: StopTurn | EndSession, cause: StopCause) -> Failure:
    message = stop_message(cause, event.reason)
    return Failure(kind=FailureKind.CANCELLED, message=message, stop=cause, by=event.who)


def _announce_stop(session: Session, event: AnnounceStop, now: float) -> Step:
    before, turn = Step(session=session), session.turn
    if not open_turns(session) or not _is_open(session):
        return before
    written = event.written[:MAX_WRITTEN] if turn is not None else ""
    if session.resume_reason and (turn is None or written in ("", turn.written)):
        return before
    mark = MarkedResumePending(at=now, reason=event.reason, written=written, cause=event.cause, by=event.who)
    if session.resume_reason:
        mark = replace(mark, reason=session.resume_reason, cause=announced_cause(session))
    return then(before, mark)


# ---------------------------------------------------------------- interruptions


def _recover(session: Session, event: Recover, now: float, limits: TurnLimits) -> Step:
    called_off = interruption_reason(event.cause)
    before = compression.called_off(Step(session=session), called_off, CompressionEnd.INTERRUPTED, now)
    turn = session.turn
    if turn is None:  # a stop was announced, or a summary was being made, before these messages had their turn
        return start(before, session.queue[0], now) if session.queue and _is_open(session) else before
    if session.phase == Phase.WAITING:  # for a person: nothing was interrupted
        return _waits_on(before, now)
    if not _is_open(session):
        return before
    if session.phase == Phase.RESUME_PENDING:  # the turn was held, and none of its work was running
        held_by = interruption_cause(session)
        return _waits_on(before, now) if event.hold else _go_on(before, turn, held_by, now, limits)
    suspends = session.interruptions + 1 >= SUSPEND_AFTER
    cut = _interrupted(before, turn, event, now, hold=HoldCause.NONE if suspends else event.hold)
    cause = cut.session.interruption
    if suspends:
        return _suspend_interrupted(cut, now)
    return _waits_on(cut, now) if event.hold else _go_on(cut, turn, cause, now, limits)


def _interrupted(before: Step, turn: Turn, event: Recover, now: float, *, hold: HoldCause) -> Step:
    session = before.session
    if session.resume_reason:
        cause, reason = announced_cause(session), session.resume_reason
    else:
        cause, reason = event.cause, interruption_reason(event.cause, hold)
    return then(before, TurnInterrupted(at=now, turn=turn.id, reason=reason, cause=cause, hold=hold))


def _suspend_interrupted(cut: Step, now: float) -> Step:
    times, last = cut.session.interruptions, cut.session.reason
    closed, _ = calls.cut_off(cut, cut.session.interruption, now)
    reason = f"interrupted {times} times in a row without one finished turn, last by: {last}"
    return _put_to_sleep(closed, Suspended(at=now, reason=reason, cause=SuspendCause.INTERRUPTIONS))


def _waits_on(before: Step, now: float) -> Step:
    """Keep waiting for the person, and clear the announced stop."""
    announced = before.session.resume_reason
    return then(before, Resumed(at=now, reason=announced)) if announced else before


def _is_open(session: Session) -> bool:
    return session.phase not in (Phase.SUSPENDED, Phase.ENDED)


def _go_on(before: Step, turn: Turn, cause: InterruptionCause, now: float, limits: TurnLimits) -> Step:
    """Start the turn's next attempt, after closing the calls without an outcome."""
    closed, note = calls.cut_off(before, cause, now)
    return calls.advance(start(closed, turn, now, note=note), now, limits)


def _suspend(session: Session, event: Suspend, now: float) -> Step:
    if not _is_open(session):
        return refuse(session, f"session {session.id} is {session.phase} already")
    before = Step(session=session)
    if session.turn is not None and session.phase != Phase.WAITING:
        cut = TurnInterrupted(at=now, turn=session.turn.id, reason=event.reason, cause=InterruptionCause.SUSPENDED)
        before = then(before, cut)  # running calls may still report; the others are closed when the turn continues
    return _put_to_sleep(before, Suspended(at=now, reason=event.reason, cause=SuspendCause.ASKED))


def _put_to_sleep(before: Step, suspended: Suspended) -> Step:
    """Suspend the session and tell the waiting senders. The turn stays open and continues after a resume."""
    after = change_phase(before, suspended)
    return publishing(after, *given_up(after.session, suspension(after.session)))


def _resume(session: Session, event: Resume, now: float, limits: TurnLimits) -> Step:
    if was_compressed(session):
        return refuse(session, f"session {session.id} was compressed and goes on as {session.successor}")
    held = session.turn if session.phase == Phase.RESUME_PENDING else None
    if _is_open(session) and event.key is None and held is None:
        return refuse(session, f"session {session.id} is {session.phase}, not suspended: there is nothing to resume")
    if _is_open(session):
        resumed: Step = then(Step(session=session), Resumed(at=now, reason=event.reason))
        resumed = replace(resumed, bind=event.key)
        return resumed if held is None else _go_on(resumed, held, interruption_cause(session), now, limits)
    resumed = change_phase(Step(session=session), Resumed(at=now, reason=event.reason))
    resumed = replace(resumed, bind=event.key)
    if session.turn is None:
        return start_next(resumed, now)
    return _go_on(resumed, session.turn, interruption_cause(session), now, limits)


def _end(session: Session, event: EndSession, now: float) -> Step:
    if session.phase == Phase.ENDED:
        return refuse(session, f"session {session.id} has ended already")
    failure = _cancelled(event, StopCause.SESSION_ENDED)
    result = calls.close_all(Step(session=session), CallOutcome.STOPPED, StopCause.SESSION_ENDED, now)
    for turn in open_turns(session):
        result = give_up(result, turn.id, failure, now, by=event.by)
    reason = with_person(event.reason, event.who)
    ended = change_phase(result, Ended(at=now, reason=reason, cause=event.cause))
    if event.successor is None:
        return ended
    return then(ended, Continued(at=now, successor=event.successor, reason=reason))


# ---------------------------------------------------------------- resets


def _reset(session: Session, event: ResetSession, now: float) -> Step:
    if not _rests_since(session, event.active_at):
        return Step(session=session)
    end = Ended(at=now, reason=event.reason, notice=event.notice, cause=EndCause.RESET)
    ended = change_phase(Step(session=session), end)
    return publishing(ended, Notice(session=session.id, text=event.notice)) if event.notice else ended


def _note_blocked(session: Session, event: NoteBlocked, now: float) -> Step:
    if not _rests_since(session, event.active_at) or session.blocked_by == event.by:
        return Step(session=session)
    return then(Step(session=session), ResetBlocked(at=now, by=event.by, reason=event.reason))


def _rests_since(session: Session, active_at: float) -> bool:
    """Return whether the session is idle and nobody has written since the decision."""
    return session.phase == Phase.IDLE and not is_pending(session) and session.active_at == active_at


# ---------------------------------------------------------------- wishes


def _prefer(session: Session, event: SetPreference, now: float) -> Step:
    if event.name not in _PREFERENCES:
        return refuse(session, f"there is no preference {event.name!r}; there are {', '.join(_PREFERENCES)}")
    changes: dict[str, Any] = {event.name: event.value}
    preferences = replace(session.preferences, **changes)
    if preferences == session.preferences:
        return Step(session=session)
    return then(Step(session=session), Preferred(at=now, preferences=preferences, reason=event.reason))


def _undo(session: Session, event: Undo, now: float, limits: TurnLimits) -> Step:
    if session.phase != Phase.IDLE or session.compressing or session.queue:
        doing = "being compressed" if session.compressing else session.phase
        return refuse(session, f"session {session.id} is {doing}; wait for it, or stop it first")
    undone: Record = Undone(at=now, seq=event.seq, offset=event.offset, turns=event.turns, reason=event.reason)
    after = then(Step(session=session), undone)
    if event.again is None:
        return after
    delivered = _deliver(after.session, event.again, now, limits)
    return replace(delivered, records=(*after.records, *delivered.records))
