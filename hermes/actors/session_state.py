"""A session's state as a fold over its records: `evolve` takes one more in, `replay` rebuilds it from the log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from hermes.records import (
    BadRecord,
    Continued,
    Ended,
    LogEntry,
    MarkedResumePending,
    MessageReceived,
    Record,
    Resumed,
    SessionStarted,
    Suspended,
    TurnFailed,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
)
from hermes.types import Phase, Seq, Session, SessionId, SessionKey, Source, Turn, TurnId, Usage

OPEN_PHASES = (Phase.RUNNING, Phase.WAITING, Phase.RESUME_PENDING)


def begin(session: SessionId, started: SessionStarted) -> Session:
    return Session(
        id=session,
        key=started.key,
        phase=Phase.IDLE,
        reason=started.reason,
        since=started.at,
        created_at=started.at,
        active_at=started.at,
        next_seq=Seq(1),
        platform=started.source.platform,
        parent=started.parent,
    )


def evolve(session: Session, record: Record) -> Session:
    """The session after one more record."""
    after = replace(_changed(session, record), next_seq=Seq(session.next_seq + 1))
    return after if after.phase == session.phase else replace(after, since=record.at)


def _changed(session: Session, record: Record) -> Session:
    match record:
        case SessionStarted():
            return session
        case MessageReceived():
            waiting = Turn(id=record.turn, accepted_at=record.at, options=record.options)
            said = session.messages + len(record.messages)
            return replace(session, queue=(*session.queue, waiting), active_at=record.at, messages=said)
        case TurnStarted():
            return _with_turn_started(session, record)
        case TurnFinished():
            return replace(
                _without(session, record.turn),
                turns=session.turns + 1,
                messages=session.messages + 1,
                usage=_sum(session.usage, record.usage),
                interruptions=0,
                last_failure=None,
            )
        case TurnFailed():
            ended = replace(_without(session, record.turn), last_failure=record.failure)
            return replace(ended, reason="the last turn failed") if ended.phase == Phase.IDLE else ended
        case TurnInterrupted():
            return replace(
                session, phase=Phase.RESUME_PENDING, reason=record.reason, interruptions=session.interruptions + 1
            )
        case MarkedResumePending():
            return replace(session, resume_reason=record.reason)
        case Suspended():
            return replace(session, phase=Phase.SUSPENDED, reason=record.reason, resume_reason="")
        case Resumed():
            open_work = session.turn is not None or session.queue
            phase = Phase.RESUME_PENDING if open_work else Phase.IDLE
            return replace(session, phase=phase, reason=record.reason, interruptions=0)
        case Ended():
            return replace(session, phase=Phase.ENDED, reason=record.reason, resume_reason="")
        case Continued():
            return replace(session, successor=record.successor)
        case _:
            assert_never(record)


def _with_turn_started(session: Session, started: TurnStarted) -> Session:
    waiting = next((turn for turn in session.queue if turn.id == started.turn), None)
    turn = waiting or session.turn or Turn(id=started.turn, accepted_at=started.at)
    return replace(
        session,
        phase=Phase.RUNNING,
        reason="a turn is in flight" if started.attempt == 1 else f"a turn is in flight, attempt {started.attempt}",
        turn=replace(turn, attempt=started.attempt),
        queue=tuple(turn for turn in session.queue if turn.id != started.turn),
        resume_reason="",
    )


def _without(session: Session, ended: TurnId) -> Session:
    """The session when that turn has ended. What waits is started by a record of its own."""
    queue = tuple(turn for turn in session.queue if turn.id != ended)
    if session.turn is not None and session.turn.id != ended:
        return replace(session, queue=queue)
    if queue and session.phase != Phase.SUSPENDED:
        reason = session.resume_reason or "the next message is about to start"
        return replace(session, phase=Phase.RESUME_PENDING, reason=reason, turn=None, queue=queue)
    phase = session.phase if session.phase == Phase.SUSPENDED else Phase.IDLE
    return replace(session, phase=phase, reason="the last turn ended", turn=None, queue=queue, resume_reason="")


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        prompt_tokens=one.prompt_tokens + other.prompt_tokens,
        completion_tokens=one.completion_tokens + other.completion_tokens,
    )


def replay(session: SessionId, entries: Iterable[LogEntry]) -> Session | None:
    """The session as its log tells it; None if the log says nothing. Damaged records are passed over."""
    state: Session | None = None
    for entry in entries:
        if state is None:
            state = begin(session, _opening_of(session, entry))
            if isinstance(entry.record, SessionStarted | BadRecord):
                continue
        if not isinstance(entry.record, BadRecord):
            state = evolve(state, entry.record)
        state = replace(state, next_seq=Seq(entry.seq + 1))
    return state


def _opening_of(session: SessionId, entry: LogEntry) -> SessionStarted:
    if isinstance(entry.record, SessionStarted):
        return entry.record
    at = 0.0 if isinstance(entry.record, BadRecord) else entry.record.at
    key = SessionKey(f"agent:main:recovered:dm:{session}")
    return SessionStarted(at=at, key=key, source=Source(platform="recovered"), reason="its first record was damaged")


def is_pending(session: Session) -> bool:
    """Whether start-up must look at this session."""
    return session.phase in OPEN_PHASES
