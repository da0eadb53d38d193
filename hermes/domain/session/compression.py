"""Compression of a session: it ends, and a child continues from a summary. Pure.

Nothing is dropped: the parent stays whole; its open turn and what waits in it move to the child in the transaction
that ends it. A failed summary changes nothing. After an automatic failure the next automatic try
waits: longer with each failure in a row, or until the context has grown. An overflow is always answered with a try.
"""

from __future__ import annotations

from hermes.domain.cause.cause import CompressionCause, CompressionEnd, EndCause
from hermes.domain.cause.legacy_reason import compression_cause
from hermes.domain.events import Notice, SessionMoved
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.records import (
    CompressionFailed,
    CompressionStarted,
    ContextCarried,
    Continued,
    Ended,
    MarkedResumePending,
    SessionStarted,
)
from hermes.domain.session.builder import (
    change_phase,
    close_handed,
    give_up,
    publishing,
    refuse,
    start_next,
    then,
)
from hermes.domain.session.fold.state_fold import begin, evolve
from hermes.domain.session.protocol import (
    Branch,
    Compress,
    Step,
    SuccessorSession,
    Summarised,
    SummaryFailed,
    TurnLimits,
)
from hermes.domain.session.state import Phase, Session, announced_cause, root_of
from hermes.domain.source import Source
from hermes.domain.text.title import clean_title
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.values import replace

PAUSE_S = 600.0  # after the first automatic failure; doubles with each one in a row
PAUSE_MAX_S = 6 * 3600.0
GROWTH = 1.2  # a context that has grown this much since the failure is tried again without a pause
REASON = "compression"


def is_rested(session: Session, now: float) -> bool:
    """Return whether an automatic compression may be tried (again)."""
    failures = session.compression_failures
    if not failures or session.context_tokens >= GROWTH * max(session.compression_failed_tokens, 1):
        return True
    return now - session.compression_failed_at >= min(PAUSE_S * (1 << min(failures - 1, 16)), PAUSE_MAX_S)


def when_full(before: Step, now: float) -> Step:
    """Start a compression after an answer that nearly filled the context."""
    session = before.session
    if session.turn is not None or session.compressing or session.handed or not is_rested(session, now):
        return before
    if session.assignment is not None and not session.queue:  # it ends with this answer
        return before
    return _summarise(before, "the context is nearly full", "", CompressionCause.FULL, now)


def on_overflow(session: Session, now: float) -> Step:
    """Start a compression in the middle of a turn, whatever failed before: else the turn fails anyway."""
    return _summarise(Step(session=session), "the context overflowed", "", CompressionCause.OVERFLOW, now)


def on_request(session: Session, event: Compress, now: float, _limits: TurnLimits) -> Step:
    if session.phase != Phase.IDLE:
        return refuse(session, f"session {session.id} is {session.phase}; it can be compressed when it is idle")
    if session.compressing:
        return refuse(session, f"session {session.id} is being compressed already")
    settled = close_handed(Step(session=session), TurnId(""), (), now)
    return _summarise(settled, event.reason, event.focus, CompressionCause.ASKED, now)


def _summarise(before: Step, reason: str, focus: str, cause: CompressionCause, now: float) -> Step:
    return then(before, CompressionStarted(at=now, reason=reason, focus=focus, cause=cause))


def called_off(before: Step, reason: str, end: CompressionEnd, now: float) -> Step:
    """Cancel the compression in progress, if any."""
    if not before.session.compressing:
        return before
    return then(before, CompressionFailed(at=now, reason=reason, counts=False, end=end))


def failed(session: Session, event: SummaryFailed, now: float, _limits: TurnLimits) -> Step:
    if not session.compressing:
        return Step(session=session)
    cause, turn = compression_cause(session.compressing_cause, session.compressing), session.turn
    failure = CompressionFailed(at=now, reason=event.reason, counts=cause is not CompressionCause.ASKED)
    after = then(Step(session=session), failure)
    text = failure_text(event.reason, automatic=failure.counts)
    after = publishing(after, Notice(session=session.id, text=text, turn=turn.id if turn else None))
    if turn is None:
        return start_next(after, now)
    if cause is not CompressionCause.OVERFLOW:
        return after
    why = f"the conversation no longer fits the model, and it could not be compressed ({event.reason})"
    advice = "nothing was lost; try /compress with a topic, or /new"
    overflow = Failure(kind=FailureKind.CONTEXT_OVERFLOW, message=f"{why}; {advice}")
    return start_next(give_up(after, turn.id, overflow, now), now)


def failure_text(reason: str, *, automatic: bool) -> str:
    """Return the notice to people about a failed compression."""
    kept = f"The conversation could not be compressed ({reason}). Nothing was lost."
    return f"{kept} It is tried again later." if automatic else kept


def summarised(session: Session, event: Summarised, now: float, _limits: TurnLimits) -> Step:
    if not session.compressing:
        return Step(session=session)
    assert [each.turn for each in event.waiting] == [each.id for each in session.queue]  # nothing is left behind
    started = _opening(session, REASON, now)
    carried = ContextCarried(
        at=now,
        origin=session.id,
        root=root_of(session),
        messages=event.messages,
        preferences=session.preferences,
        grants=session.grants,
        turn=session.turn,
        waiting=event.waiting,
        owner=session.owner,
        active_at=session.active_at,
        turns=session.turns,
        usage=session.usage + event.usage,
        summary_usage=event.usage,
        summary_model=event.model,
        place=session.place,
        origins=event.origins,
        starts=event.starts,
        instructions=event.instructions,
        posted=session.posted,
        unreviewed_turns=session.unreviewed_turns,
        unreviewed_calls=session.unreviewed_calls,
        assignment=session.assignment,
        goal=session.goal,
    )
    child = _child(event.child, started, carried, *_mark(session, now))
    turn = session.turn.id if session.turn is not None else None
    ended = change_phase(Step(session=session), Ended(at=now, reason=REASON, cause=EndCause.COMPRESSION))
    linked = replace(then(ended, Continued(at=now, successor=event.child, reason=REASON)), child=child)
    return publishing(linked, SessionMoved(session=session.id, successor=event.child, reason=event.reason, turn=turn))


def branch(session: Session, event: Branch, now: float, _limits: TurnLimits) -> Step:
    started = _opening(session, event.reason, now)
    carried = ContextCarried(
        at=now,
        origin=session.id,
        root=root_of(session),
        messages=event.messages,
        preferences=replace(session.preferences, title=clean_title(event.title)),
        prompt=event.prompt,
        owner=session.owner,
        active_at=now,
        place=session.place,
        origins=event.origins,
        starts=event.starts,
        instructions=event.instructions,
        handed=event.handed,
        posted=session.posted if event.move_key else (),
    )
    child = _child(event.child, started, carried)
    return Step(session=session, child=replace(child, move_key=event.move_key))


def _opening(session: Session, reason: str, now: float) -> SessionStarted:
    source = Source(platform=session.platform, user=session.owner, company=session.company)
    return SessionStarted(at=now, key=session.key, source=source, reason=reason, parent=session.id)


def _mark(session: Session, now: float) -> tuple[MarkedResumePending, ...]:
    """Return the parent's mark of an announced stop, for the child."""
    if not session.resume_reason:
        return ()
    return (MarkedResumePending(at=now, reason=session.resume_reason, cause=announced_cause(session)),)


def _child(
    name: SessionId, started: SessionStarted, *records: ContextCarried | MarkedResumePending
) -> SuccessorSession:
    session = begin(name, started)
    for record in records:
        session = evolve(session, record)
    return SuccessorSession(session=session, records=(started, *records), move_key=True)
