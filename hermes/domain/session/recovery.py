"""Interruption of turns and their continuation: recovery after a crash or restart, suspension, resumption."""

from __future__ import annotations

from hermes.domain.cause.cause import CompressionEnd, HoldCause, InterruptionCause, SuspendCause
from hermes.domain.cause.end_cause import was_compressed
from hermes.domain.cause.reason import interruption_reason
from hermes.domain.records import Resumed, Suspended, TurnInterrupted
from hermes.domain.session import calls, compression
from hermes.domain.session.builder import (
    change_phase,
    given_up,
    publishing,
    refuse,
    start,
    start_next,
    suspension,
    then,
)
from hermes.domain.session.protocol import Recover, Resume, Step, Suspend, TurnLimits
from hermes.domain.session.state import (
    Phase,
    Session,
    Turn,
    announced_cause,
    interruption_cause,
    is_open,
    waits_for_children,
)
from hermes.domain.values import replace

SUSPEND_AFTER = 3  # interruptions in a row without one finished turn


def recover(session: Session, event: Recover, now: float, limits: TurnLimits) -> Step:
    if session.assignment is not None and event.hold is HoldCause.CONFIGURED:  # no person would continue it
        event = replace(event, hold=HoldCause.NONE)
    called_off = interruption_reason(event.cause)
    before = compression.called_off(Step(session=session), called_off, CompressionEnd.INTERRUPTED, now)
    turn = session.turn
    if turn is None:  # a stop was announced, or a summary was being made, before these messages had their turn
        return start(before, session.queue[0], now) if session.queue and is_open(session) else before
    if session.phase == Phase.WAITING and not _runs_a_script(turn):  # for a person: nothing was interrupted
        return _keep_waiting(before, now)
    if not is_open(session):
        return before
    if session.phase == Phase.RESUME_PENDING:  # the turn was held, and none of its work was running
        held_by = interruption_cause(session)
        return _keep_waiting(before, now) if event.hold else continue_turn(before, turn, held_by, now, limits)
    suspends = session.interruptions + 1 >= SUSPEND_AFTER and not waits_for_children(turn)
    cut = _interrupted(before, turn, event, now, hold=HoldCause.NONE if suspends else event.hold)
    cause = cut.session.interruption
    if suspends:
        return _suspend_interrupted(cut, now)
    return _keep_waiting(cut, now) if event.hold else continue_turn(cut, turn, cause, now, limits)


def _runs_a_script(turn: Turn) -> bool:
    """Return whether a script was running while one of its calls waited for a person."""
    return any(call.within for call in turn.calls)


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
    return _suspend_by(closed, Suspended(at=now, reason=reason, cause=SuspendCause.INTERRUPTIONS))


def _keep_waiting(before: Step, now: float) -> Step:
    """Keep waiting for the person, and clear the announced stop."""
    announced = before.session.resume_reason
    return then(before, Resumed(at=now, reason=announced)) if announced else before


def continue_turn(before: Step, turn: Turn, cause: InterruptionCause, now: float, limits: TurnLimits) -> Step:
    """Start the turn's next attempt, after closing the calls without an outcome."""
    closed, note = calls.cut_off(before, cause, now)
    return calls.advance(start(closed, turn, now, note=note), now, limits)


def suspend(session: Session, event: Suspend, now: float, _limits: TurnLimits) -> Step:
    if not is_open(session):
        return refuse(session, f"session {session.id} is {session.phase} already")
    before = Step(session=session)
    if session.turn is not None and session.phase != Phase.WAITING:
        cut = TurnInterrupted(at=now, turn=session.turn.id, reason=event.reason, cause=InterruptionCause.SUSPENDED)
        before = then(before, cut)  # running calls may still report; the others are closed when the turn continues
    return _suspend_by(before, Suspended(at=now, reason=event.reason, cause=SuspendCause.ASKED))


def _suspend_by(before: Step, suspended: Suspended) -> Step:
    """Suspend the session and tell the waiting senders. The turn stays open and continues after a resume."""
    after = change_phase(before, suspended)
    return publishing(after, *given_up(after.session, suspension(after.session)))


def resume(session: Session, event: Resume, now: float, limits: TurnLimits) -> Step:
    if was_compressed(session):
        return refuse(session, f"session {session.id} was compressed and goes on as {session.successor}")
    held = session.turn if session.phase == Phase.RESUME_PENDING else None
    if is_open(session) and event.key is None and held is None:
        return refuse(session, f"session {session.id} is {session.phase}, not suspended: there is nothing to resume")
    if is_open(session):
        resumed: Step = then(Step(session=session), Resumed(at=now, reason=event.reason))
        resumed = replace(resumed, bind=event.key)
        return resumed if held is None else continue_turn(resumed, held, interruption_cause(session), now, limits)
    resumed = change_phase(Step(session=session), Resumed(at=now, reason=event.reason))
    resumed = replace(resumed, bind=event.key)
    if session.turn is None:
        return start_next(resumed, now)
    return continue_turn(resumed, session.turn, interruption_cause(session), now, limits)
