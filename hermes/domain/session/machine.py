"""State machine of a session, as pure functions without clock, disk or event loop.

`step(session, event, now)` returns the next state, the records to store and the effects to perform afterwards.
`open_work(session)` returns the work that must run meanwhile. `HANDLERS` names the function that decides each event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from hermes.domain.child import review
from hermes.domain.child.child import steps
from hermes.domain.child.end import end_when_done
from hermes.domain.goal import goal_step
from hermes.domain.session import (
    acceptance,
    calls,
    compression,
    inner_call,
    lifecycle,
    model_call,
    recovery,
    turn_stop,
)
from hermes.domain.session.jobs import ModelReport, RetryReport, ToolReport
from hermes.domain.session.protocol import (
    AnnounceStop,
    Answer,
    Begin,
    Branch,
    CallInside,
    Compress,
    EndInside,
    EndSession,
    Event,
    HandOver,
    JudgeGoal,
    ModelCallWork,
    NoteBlocked,
    NotePost,
    Recover,
    ResetSession,
    Resume,
    Rewrite,
    SetGoal,
    SetPreference,
    StartBackground,
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
from hermes.domain.session.state import Phase, Session, is_open
from hermes.domain.session.transaction import Due, complete, never_due
from hermes.domain.turn.submission import Submission
from hermes.domain.turn.tool_call import CallState
from hermes.domain.values import replace

_LIMITS = TurnLimits()
_E = TypeVar("_E")
_Handler: TypeAlias = Callable[[Session, Any, float, TurnLimits], Step]


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
        decided = _decide_in_a_stop(session, event, now, limits, stopping)
    else:
        decided = _decide(session, event, now, limits)
    followed = review.when_due(
        session, goal_step.when_turn_ended(session, end_when_done(decided, now), now), now, limits.review
    )
    return complete(session, followed, now, due)


def _decide(session: Session, event: Event, now: float, limits: TurnLimits) -> Step:
    return HANDLERS[type(event)](session, event, now, limits)


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
    if not is_open(session):
        return ()
    if session.compressing:
        return (SummaryWork(reason=session.compressing, focus=session.compressing_focus),)
    turn = session.turn
    if turn is None or session.phase not in (Phase.RUNNING, Phase.WAITING):
        return ()
    if turn.calls:  # a script goes on while one of its calls waits for a person
        started = (call.id for call in turn.calls if call.state is CallState.STARTED and not call.within)
        return tuple(ToolCallWork(turn=turn.id, attempt=turn.attempt, call=call) for call in started)
    last = turn.replies >= steps(session.assignment, limits.max_replies)
    return (ModelCallWork(turn=turn.id, attempt=turn.attempt, replies=turn.replies, last=last),)


def _on(event: type[_E], handler: Callable[[Session, _E, float, TurnLimits], Step]) -> tuple[type, _Handler]:
    """Return an entry of the table. The type checker proves that the handler takes the event."""
    return event, handler


HANDLERS: Mapping[type, _Handler] = dict(
    (
        _on(Submission, acceptance.deliver),
        _on(StartHeld, acceptance.start_held),
        _on(Rewrite, acceptance.rewrite),
        _on(Begin, acceptance.begin_session),
        _on(Undo, acceptance.undo),
        _on(ModelReport, model_call.model_reported),
        _on(RetryReport, model_call.model_retried),
        _on(ToolReport, calls.tool_returned),
        _on(CallInside, inner_call.call_inside),
        _on(EndInside, inner_call.end_inside),
        _on(Answer, calls.answer),
        _on(StopTurn, turn_stop.stop_turn),
        _on(AnnounceStop, turn_stop.announce_stop),
        _on(Recover, recovery.recover),
        _on(Suspend, recovery.suspend),
        _on(Resume, recovery.resume),
        _on(EndSession, lifecycle.end),
        _on(HandOver, lifecycle.hand_over),
        _on(NotePost, lifecycle.note_post),
        _on(ResetSession, lifecycle.reset),
        _on(NoteBlocked, lifecycle.note_blocked),
        _on(StartBackground, lifecycle.start_background),
        _on(SetGoal, goal_step.set_goal),
        _on(JudgeGoal, goal_step.judge_goal),
        _on(SetPreference, lifecycle.set_preference),
        _on(Compress, compression.on_request),
        _on(Summarised, compression.summarised),
        _on(SummaryFailed, compression.failed),
        _on(Branch, compression.branch),
    )
)
