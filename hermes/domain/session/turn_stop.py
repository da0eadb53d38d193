"""Stop of a turn by a person, and announcement of the daemon's stop."""

from __future__ import annotations

from hermes.domain.cause.cause import CompressionEnd, StopCause
from hermes.domain.cause.reason import stop_message
from hermes.domain.records import MarkedResumePending
from hermes.domain.session import calls, compression
from hermes.domain.session.builder import give_up, open_turns, start_next, then
from hermes.domain.session.protocol import AnnounceStop, EndSession, Step, StopTurn, TurnLimits
from hermes.domain.session.state import Phase, Session, announced_cause, is_open
from hermes.domain.turn.tool_call import CallOutcome
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.values import replace

MAX_WRITTEN = 8_000  # characters that are kept of an answer which a stop cut off
DELETED = Failure(
    kind=FailureKind.CANCELLED,
    message=stop_message(StopCause.SESSION_DELETED, ""),
    stop=StopCause.SESSION_DELETED,
)


def stop_turn(session: Session, event: StopTurn, now: float, _limits: TurnLimits) -> Step:
    if session.turn is None and session.compressing and event.turn is None:
        return start_next(
            compression.called_off(Step(session=session), event.reason, CompressionEnd.STOPPED, now), now
        )
    if session.turn is not None and event.turn in (None, session.turn.id):
        stopped = stop_current(Step(session=session), event, StopCause.ASKED, now)
        return stopped if session.phase == Phase.SUSPENDED else start_next(stopped, now)
    if any(turn.id == event.turn for turn in session.queue):
        assert event.turn is not None
        return give_up(Step(session=session), event.turn, cancellation(event, StopCause.ASKED), now, by=event.by)
    return Step(session=session)


def stop_current(before: Step, event: StopTurn, cause: StopCause, now: float) -> Step:
    """End the turn in flight and its calls."""
    turn = before.session.turn
    assert turn is not None
    closed = calls.close_all(before, CallOutcome.STOPPED, cause, now)
    closed = compression.called_off(closed, event.reason, CompressionEnd.STOPPED, now)
    return give_up(closed, turn.id, cancellation(event, cause), now, by=event.by)


def cancellation(event: StopTurn | EndSession, cause: StopCause) -> Failure:
    message = stop_message(cause, event.reason)
    return Failure(kind=FailureKind.CANCELLED, message=message, stop=cause, by=event.who)


def announce_stop(session: Session, event: AnnounceStop, now: float, _limits: TurnLimits) -> Step:
    before, turn = Step(session=session), session.turn
    if not open_turns(session) or not is_open(session):
        return before
    written = event.written[:MAX_WRITTEN] if turn is not None else ""
    if session.resume_reason and (turn is None or written in ("", turn.written)):
        return before
    mark = MarkedResumePending(at=now, reason=event.reason, written=written, cause=event.cause, by=event.who)
    if session.resume_reason:
        mark = replace(mark, reason=session.resume_reason, cause=announced_cause(session))
    return then(before, mark)
