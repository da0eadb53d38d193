"""Changes of a session's state by the records of messages and turns."""

from __future__ import annotations

from typing import Any

from hermes.domain.access.role import assumed
from hermes.domain.cause.cause import InterruptionCause
from hermes.domain.cause.legacy_reason import legacy_interruption
from hermes.domain.ids import TurnId
from hermes.domain.records import (
    Amended,
    MarkedResumePending,
    Merged,
    MessageReceived,
    TurnFailed,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
)
from hermes.domain.session.fold.call_fold import with_calls
from hermes.domain.session.state import Phase, Session, Turn, waits_for_children
from hermes.domain.session.turn_role import with_words_of
from hermes.domain.source import Place
from hermes.domain.turn.tool_call import CallState, Effect
from hermes.domain.turn.turn_failure import FailureKind
from hermes.domain.values import replace


def received(session: Session, record: MessageReceived) -> Session:
    source = record.source
    place = session.place if source.automatic else source.place
    return replace(
        session,
        queue=(*session.queue, waiting_turn(record, place)),
        active_at=session.active_at if source.automatic else record.at,
        messages=session.messages + len(record.messages),
        place=place or session.place,
    )


def waiting_turn(record: MessageReceived, place: Place | None) -> Turn:
    source = record.source
    return Turn(
        id=record.turn,
        accepted_at=record.at,
        options=record.options,
        steer=record.steer,
        place=place,
        role=source.standing,
        by=source.by,
        name=source.name,
        chain=record.chain,
        results=record.results,
        automatic=source.automatic,
    )


def amended(session: Session, record: Amended) -> Session:
    more = 0 if record.replaces else len(record.messages)
    queue = tuple(with_words_of(turn, record.role) if turn.id == record.turn else turn for turn in session.queue)
    return replace(session, active_at=record.at, messages=session.messages + more, queue=queue)


def turn_started(session: Session, record: TurnStarted) -> Session:
    waiting = next((turn for turn in session.queue if turn.id == record.turn), None)
    turn = waiting or session.turn or Turn(id=record.turn, accepted_at=record.at)
    return replace(
        session,
        phase=Phase.RUNNING,
        reason="a turn is in flight" if record.attempt == 1 else f"a turn is in flight, attempt {record.attempt}",
        turn=replace(turn, attempt=record.attempt, written=""),
        queue=_except(session.queue, record.turn),
        posted=() if record.attempt == 1 else session.posted,
        resume_reason="",
        resume_cause=InterruptionCause.UNKNOWN,
        interruption=InterruptionCause.UNKNOWN,
        blocked_by=(),
        blocked_reason="",
        handed=(),
    )


def merged(session: Session, record: Merged) -> Session:
    turn = session.turn and replace(session.turn, merged=(*session.turn.merged, record.turn))
    joined = next((each for each in session.queue if each.id == record.turn), None)
    if turn is not None and joined is not None and joined.chain:  # its client waits for what the model says next
        turn = replace(turn, chain=joined.chain, said="")
    if turn is not None and joined is not None and not record.hidden:
        turn = with_words_of(turn, joined.role or assumed(session.platform), joined.by)
    return replace(session, queue=_except(session.queue, record.turn), turn=turn)


def turn_finished(session: Session, record: TurnFinished) -> Session:
    turn = session.turn
    counts = turn is not None and not turn.automatic and not record.handed
    ended = _without(
        session,
        record.turn,
        unreviewed_turns=session.unreviewed_turns + counts,
        turns=session.turns + 1,
        messages=session.messages + 1,
        usage=session.usage + record.usage,
        context_tokens=record.context_tokens,
        interruptions=0,
        last_failure=None,
        handed=record.handed,
    )
    if record.handed and ended.phase == Phase.IDLE:
        return replace(ended, reason="the client runs tools of its own")
    return ended


def turn_failed(session: Session, record: TurnFailed) -> Session:
    ended = _without(session, record.turn, last_failure=record.failure)
    how = "was stopped" if record.failure.kind is FailureKind.CANCELLED else "failed"
    return replace(ended, reason=f"the last turn {how}") if ended.phase == Phase.IDLE else ended


def marked_resume_pending(session: Session, record: MarkedResumePending) -> Session:
    turn = session.turn and replace(session.turn, written=record.written or session.turn.written)
    cause = record.cause or legacy_interruption(record.reason)
    return replace(session, resume_reason=record.reason, resume_cause=cause, turn=turn)


def turn_interrupted(session: Session, record: TurnInterrupted) -> Session:
    """Interrupt the turn. Calls whose repeat is harmless run again."""
    calls = tuple(
        replace(call, state=CallState.PROPOSED)
        if call.state is CallState.STARTED and call.effect is not Effect.EFFECT and not call.within
        else call
        for call in (session.turn.calls if session.turn else ())
    )
    cut = with_calls(session, calls)
    return replace(
        cut,
        phase=Phase.RESUME_PENDING,
        reason=record.reason,
        interruption=record.cause or legacy_interruption(record.reason),
        interruptions=session.interruptions + (not waits_for_children(session.turn)),
    )


def _without(session: Session, ended: TurnId, **changes: Any) -> Session:
    """Return the session without an ended turn, and with further changes: a copy costs more than they do.

    A record of its own starts the next turn.
    """
    changes["queue"] = queue = _except(session.queue, ended)
    if session.turn is not None and session.turn.id != ended:
        return replace(session, **changes)
    if queue and session.phase != Phase.SUSPENDED:
        reason = session.resume_reason or "the next message is about to start"
        return replace(session, phase=Phase.RESUME_PENDING, reason=reason, turn=None, **changes)
    if session.phase != Phase.SUSPENDED:  # else it sleeps on, for the reason it has
        changes |= {"phase": Phase.IDLE, "reason": "the last turn ended"}
    return replace(session, turn=None, resume_reason="", resume_cause=InterruptionCause.UNKNOWN, **changes)


def _except(queue: tuple[Turn, ...], gone: TurnId) -> tuple[Turn, ...]:
    return tuple(turn for turn in queue if turn.id != gone)
