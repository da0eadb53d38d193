"""Reports of model calls: an answer ends the turn or begins tool calls, a failure ends the turn."""

from __future__ import annotations

from hermes.domain.ids import TurnId
from hermes.domain.records import ModelReplied, ModelRetried, PromptBuilt, TurnFinished
from hermes.domain.session import calls, compression, turn_end
from hermes.domain.session.builder import give_up, start_next, then
from hermes.domain.session.jobs import ModelReport, RetryReport
from hermes.domain.session.protocol import Step, TurnLimits
from hermes.domain.session.state import Phase, Session
from hermes.domain.turn.turn_failure import Failure, FailureKind


def model_reported(session: Session, event: ModelReport, now: float, limits: TurnLimits) -> Step:
    if not _is_current(session, event):
        return Step(session=session)
    if event.failure is not None:
        return _model_failed(session, event.turn, event.failure, now)
    return _model_answered(session, event, now, limits)


def _model_answered(session: Session, event: ModelReport, now: float, limits: TurnLimits) -> Step:
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
            handed=event.handed,
            handed_message=event.handed_message,
        )
        return calls.advance(then(before, replied), now, limits)
    finished = _finish(before, event, now)
    return start_next(compression.when_full(finished, now) if event.context_full else finished, now)


def _finish(before: Step, event: ModelReport, now: float) -> Step:
    finished = TurnFinished(
        at=now,
        turn=event.turn,
        message=event.handed_message or event.message,
        model=event.model,
        finish_reason=turn_end.TOOL_CALLS if event.handed else event.finish_reason,
        usage=event.usage,
        context_tokens=event.context_tokens,
        waited_s=event.waited_s,
        handed=event.handed,
    )
    return turn_end.finish(before, finished, event.text)


def _model_failed(session: Session, turn: TurnId, failure: Failure, now: float) -> Step:
    if failure.kind is FailureKind.CONTEXT_OVERFLOW:
        return compression.on_overflow(session, now)
    return start_next(give_up(Step(session=session), turn, failure, now), now)


def model_retried(session: Session, event: RetryReport, now: float, _limits: TurnLimits) -> Step:
    if not _is_current(session, event):
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


def _is_current(session: Session, report: ModelReport | RetryReport) -> bool:
    """Return whether a report belongs to the current attempt. Late reports are ignored."""
    turn = session.turn
    if turn is None or session.phase != Phase.RUNNING or session.compressing:
        return False
    return (turn.id, turn.attempt, turn.replies) == (report.turn, report.attempt, report.replies)
