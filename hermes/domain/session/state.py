"""Session state as a fold over its records: `evolve` applies one record, `replay` rebuilds it from the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from hermes.domain.access.question import FOR_THE_SESSION
from hermes.domain.access.role import assumed
from hermes.domain.legacy_reason import compression_cause, legacy_interruption
from hermes.domain.records import (
    Amended,
    Answered,
    Asked,
    AuthorityDropped,
    BadRecord,
    CompressionFailed,
    CompressionStarted,
    ContextCarried,
    Continued,
    Ended,
    LogEntry,
    MarkedResumePending,
    Merged,
    MessageReceived,
    ModelReplied,
    ModelRetried,
    Preferred,
    PromptBuilt,
    Record,
    ResetBlocked,
    Resumed,
    SessionStarted,
    Suspended,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
    Undone,
)
from hermes.domain.session.turn_role import answered_by, who_wants, with_words_of
from hermes.domain.types import (
    Approval,
    Call,
    CallState,
    Effect,
    EndCause,
    FailureKind,
    Gate,
    InterruptionCause,
    Phase,
    Place,
    Preferences,
    Seq,
    Session,
    SessionId,
    SessionKey,
    Source,
    Turn,
    TurnId,
    Verdict,
)

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
        owner=started.source.user,
        place=started.source.place,
        company=started.source.company,
    )


def evolve(session: Session, record: Record) -> Session:
    """Return the session after one more record."""
    after = replace(_CHANGES[type(record)](session, record), next_seq=Seq(session.next_seq + 1))
    after = _with_phase_of_calls(after)
    return after if after.phase == session.phase else replace(after, since=record.at)


# ---------------------------------------------------------------- messages and turns


def _received(session: Session, record: MessageReceived) -> Session:
    source = record.source
    place = session.place if source.automatic else source.place
    return replace(
        session,
        queue=(*session.queue, _waiting(record, place)),
        active_at=session.active_at if source.automatic else record.at,
        messages=session.messages + len(record.messages),
        place=place or session.place,
    )


def _waiting(record: MessageReceived, place: Place | None) -> Turn:
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
    )


def _amended(session: Session, record: Amended) -> Session:
    more = 0 if record.replaces else len(record.messages)
    queue = tuple(with_words_of(turn, record.role) if turn.id == record.turn else turn for turn in session.queue)
    return replace(session, active_at=record.at, messages=session.messages + more, queue=queue)


def _turn_started(session: Session, record: TurnStarted) -> Session:
    waiting = next((turn for turn in session.queue if turn.id == record.turn), None)
    turn = waiting or session.turn or Turn(id=record.turn, accepted_at=record.at)
    return replace(
        session,
        phase=Phase.RUNNING,
        reason="a turn is in flight" if record.attempt == 1 else f"a turn is in flight, attempt {record.attempt}",
        turn=replace(turn, attempt=record.attempt, written=""),
        queue=_except(session.queue, record.turn),
        resume_reason="",
        resume_cause=InterruptionCause.UNKNOWN,
        interruption=InterruptionCause.UNKNOWN,
        blocked_by=(),
        blocked_reason="",
    )


def _merged(session: Session, record: Merged) -> Session:
    turn = session.turn and replace(session.turn, merged=(*session.turn.merged, record.turn))
    joined = next((each for each in session.queue if each.id == record.turn), None)
    if turn is not None and joined is not None and not record.hidden:
        turn = with_words_of(turn, joined.role or assumed(session.platform), joined.by)
    return replace(session, queue=_except(session.queue, record.turn), turn=turn)


def _turn_finished(session: Session, record: TurnFinished) -> Session:
    return replace(
        _without(session, record.turn),
        turns=session.turns + 1,
        messages=session.messages + 1,
        usage=session.usage + record.usage,
        context_tokens=record.context_tokens,
        interruptions=0,
        last_failure=None,
    )


def _turn_failed(session: Session, record: TurnFailed) -> Session:
    ended = replace(_without(session, record.turn), last_failure=record.failure)
    how = "was stopped" if record.failure.kind is FailureKind.CANCELLED else "failed"
    return replace(ended, reason=f"the last turn {how}") if ended.phase == Phase.IDLE else ended


def _marked(session: Session, record: MarkedResumePending) -> Session:
    turn = session.turn and replace(session.turn, written=record.written or session.turn.written)
    cause = record.cause or legacy_interruption(record.reason)
    return replace(session, resume_reason=record.reason, resume_cause=cause, turn=turn)


def _turn_interrupted(session: Session, record: TurnInterrupted) -> Session:
    """Interrupt the turn. Calls that only read run again."""
    calls = tuple(
        replace(call, state=CallState.PROPOSED)
        if call.state is CallState.STARTED and call.effect is Effect.PURE
        else call
        for call in (session.turn.calls if session.turn else ())
    )
    cut = _with_calls(session, calls)
    return replace(
        cut,
        phase=Phase.RESUME_PENDING,
        reason=record.reason,
        interruption=record.cause or legacy_interruption(record.reason),
        interruptions=session.interruptions + 1,
    )


def _without(session: Session, ended: TurnId) -> Session:
    """Return the session without an ended turn. A record of its own starts the next one."""
    queue = _except(session.queue, ended)
    if session.turn is not None and session.turn.id != ended:
        return replace(session, queue=queue)
    if queue and session.phase != Phase.SUSPENDED:
        reason = session.resume_reason or "the next message is about to start"
        return replace(session, phase=Phase.RESUME_PENDING, reason=reason, turn=None, queue=queue)
    alone = replace(session, turn=None, queue=queue, resume_reason="", resume_cause=InterruptionCause.UNKNOWN)
    if session.phase == Phase.SUSPENDED:
        return alone  # it sleeps on, for the reason it has
    return replace(alone, phase=Phase.IDLE, reason="the last turn ended")


def _except(queue: tuple[Turn, ...], gone: TurnId) -> tuple[Turn, ...]:
    return tuple(turn for turn in queue if turn.id != gone)


# ---------------------------------------------------------------- the model and its calls


def _replied(session: Session, record: ModelReplied) -> Session:
    assert session.turn is not None
    turn = session.turn
    turn = replace(turn, replies=turn.replies + 1, calls=record.calls, usage=turn.usage + record.usage, written="")
    return replace(
        session,
        turn=turn,
        messages=session.messages + 1,
        usage=session.usage + record.usage,
        context_tokens=record.context_tokens,
    )


def _tool_started(session: Session, record: ToolStarted) -> Session:
    return _with_call(session, record.call, lambda call: replace(call, state=CallState.STARTED))


def _tool_finished(session: Session, record: ToolFinished) -> Session:
    calls = session.turn.calls if session.turn else ()
    left = tuple(call for call in calls if call.id != record.call)
    return replace(_with_calls(session, left), messages=session.messages + 1)


def _asked(session: Session, record: Asked) -> Session:
    return _with_call(session, record.call, lambda call: _asked_call(call, record))


def _asked_call(call: Call, record: Asked) -> Call:
    """Mark a call as asked. Nothing is granted for longer than its choices offer."""
    once = call.gate.once or FOR_THE_SESSION[0] not in record.choices
    return replace(
        call,
        state=CallState.ASKED,
        choices=record.choices,
        gate=replace(call.gate, once=once),
        routed=record.routed,
        asked_in=record.asked_in,
        cut=record.cut,
    )


def _answered(session: Session, record: Answered) -> Session:
    """Let the call continue, keep a grant for the session, and count the answer as activity."""
    calls = session.turn.calls if session.turn else ()
    rules = tuple(rule for call in calls if call.id == record.call and not call.gate.once for rule in call.gate.rules)
    granted = rules if record.answer == Approval.SESSION else ()  # ALWAYS is stored as a fact
    answered = _with_call(
        session,
        record.call,
        lambda call: replace(
            call, state=CallState.PROPOSED, gate=_opened(call.gate), question="", approved_by=answered_by(record)
        ),
    )
    if answered.turn is not None and any(call.id == record.call and call.question for call in calls):
        answered = replace(
            answered, turn=with_words_of(answered.turn, record.role, record.by)
        )  # the model reads the answer
    grants = tuple(dict.fromkeys((*session.grants, *granted)))
    return replace(answered, grants=grants, active_at=record.at)


def _opened(gate: Gate) -> Gate:
    """Return the gate opened. Its rules stay: they are what was allowed."""
    return replace(gate, verdict=Verdict.ALLOW)


def _with_call(session: Session, name: str, change: Callable[[Call], Call]) -> Session:
    calls = session.turn.calls if session.turn else ()
    return _with_calls(session, tuple(change(call) if call.id == name else call for call in calls))


def _with_calls(session: Session, calls: tuple[Call, ...]) -> Session:
    return session if session.turn is None else replace(session, turn=replace(session.turn, calls=calls))


def _with_phase_of_calls(session: Session) -> Session:
    """Derive the phase from the calls: a turn waits while one of its calls waits for a person."""
    if session.turn is None or session.phase not in (Phase.RUNNING, Phase.WAITING):
        return session
    asked = next((call for call in session.turn.calls if call.state is CallState.ASKED), None)
    if asked is not None:
        return replace(session, phase=Phase.WAITING, reason=_waits_for(asked, session.turn))
    if session.phase == Phase.WAITING:
        return replace(session, phase=Phase.RUNNING, reason="a turn is in flight")
    return session


def _waits_for(asked: Call, turn: Turn) -> str:
    if asked.question:
        return f"it asked: {asked.question}"
    needs = f"{asked.name} needs permission: {asked.gate.reason}"
    return f"{needs}; {who_wants(turn)} waits for the owner's approval" if asked.routed else needs


# ---------------------------------------------------------------- lifecycle


def _suspended(session: Session, record: Suspended) -> Session:
    return replace(
        session,
        phase=Phase.SUSPENDED,
        reason=record.reason,
        resume_reason="",
        resume_cause=InterruptionCause.UNKNOWN,
        compressing="",
    )


def _resumed(session: Session, record: Resumed) -> Session:
    """Resume the session. One that was open keeps its phase; an announced stop is over."""
    if session.phase == Phase.WAITING:  # it was recovered, not resumed
        return replace(session, resume_reason="", resume_cause=InterruptionCause.UNKNOWN)
    session = replace(session, taken_up_at=record.at)
    if session.phase not in (Phase.SUSPENDED, Phase.ENDED):
        return replace(session, resume_reason="", resume_cause=InterruptionCause.UNKNOWN)
    open_work = session.turn is not None or session.queue
    phase = Phase.RESUME_PENDING if open_work else Phase.IDLE
    return replace(
        session,
        phase=phase,
        reason=record.reason,
        interruptions=0,
        successor=None,
        notice=None,
        end_cause=EndCause.UNKNOWN,
    )


def _ended(session: Session, record: Ended) -> Session:
    """End the session. Its open turns have ended before, or a child takes them over in the same transaction."""
    return replace(
        session,
        phase=Phase.ENDED,
        reason=record.reason,
        resume_reason="",
        resume_cause=InterruptionCause.UNKNOWN,
        compressing="",
        turn=None,
        queue=(),
        blocked_by=(),
        blocked_reason="",
        notice=record.notice,
        end_cause=record.cause,
    )


def _preferred(session: Session, record: Preferred) -> Session:
    """Set the preferences. Another personality needs a new prompt."""
    prompted = session.prompted and record.preferences.personality == session.preferences.personality
    return replace(session, preferences=record.preferences, prompted=prompted)


def _undone(session: Session, record: Undone) -> Session:
    """Hide undone messages. The new span may contain earlier ones."""
    earlier = (span for span in session.hidden if span[:2] < (record.seq, record.offset))
    return replace(session, hidden=(*earlier, (record.seq, record.offset, session.next_seq)), context_tokens=0)


def _compression_started(session: Session, record: CompressionStarted) -> Session:
    return replace(
        session,
        compressing=record.reason,
        compressing_focus=record.focus,
        compressing_cause=compression_cause(record.cause, record.reason),
        compressing_since=record.at,
    )


def _compression_failed(session: Session, record: CompressionFailed) -> Session:
    over = replace(session, compressing="", compression_problem=record.reason)
    if not record.counts:
        return over
    return replace(
        over,
        compression_failures=session.compression_failures + 1,
        compression_failed_at=record.at,
        compression_failed_tokens=session.context_tokens,
    )


def _carried(session: Session, record: ContextCarried) -> Session:
    waiting = tuple(
        _waiting(each, record.place if each.source.automatic else each.source.place) for each in record.waiting
    )
    return replace(
        session,
        phase=Phase.RUNNING if record.turn else Phase.RESUME_PENDING if waiting else session.phase,
        reason="a turn is in flight" if record.turn else session.reason,
        root=record.root,
        owner=record.owner or session.owner,
        preferences=record.preferences,
        grants=record.grants,
        prompted=record.prompt is not None,
        turn=record.turn,
        queue=waiting,
        messages=len(record.messages),
        active_at=record.active_at,
        turns=record.turns,
        usage=record.usage,
        place=record.place,
    )


def _without_authority(session: Session, _record: AuthorityDropped) -> Session:
    title_only = Preferences(title=session.preferences.title)
    return replace(session, preferences=title_only, grants=(), prompted=False)


_CHANGES: Mapping[type, Callable[[Session, Any], Session]] = {
    SessionStarted: lambda session, _: session,
    MessageReceived: _received,
    Amended: _amended,
    TurnStarted: _turn_started,
    Merged: _merged,
    PromptBuilt: lambda session, _: replace(session, prompted=True),
    ModelReplied: _replied,
    ModelRetried: lambda session, _: session,
    ToolStarted: _tool_started,
    ToolFinished: _tool_finished,
    Asked: _asked,
    Answered: _answered,
    TurnFinished: _turn_finished,
    TurnFailed: _turn_failed,
    TurnInterrupted: _turn_interrupted,
    MarkedResumePending: _marked,
    Suspended: _suspended,
    Resumed: _resumed,
    Ended: _ended,
    ResetBlocked: lambda session, record: replace(session, blocked_by=record.by, blocked_reason=record.reason),
    Continued: lambda session, record: replace(session, successor=record.successor),
    Preferred: _preferred,
    Undone: _undone,
    CompressionStarted: _compression_started,
    CompressionFailed: _compression_failed,
    ContextCarried: _carried,
    AuthorityDropped: _without_authority,
}


# ---------------------------------------------------------------- from the log


def replay(session: SessionId, entries: Iterable[LogEntry]) -> Session | None:
    """Return the session rebuilt from its log; None if the log is empty. Damaged records are skipped."""
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


def announced_cause(session: Session) -> InterruptionCause:
    """Return the cause of the stop that was announced to the session."""
    return session.resume_cause or legacy_interruption(session.resume_reason)


def interruption_cause(session: Session) -> InterruptionCause:
    """Return why the turn of a session that does not run was interrupted."""
    known = session.interruption or legacy_interruption(session.reason)
    suspended = session.phase is Phase.SUSPENDED and not known
    return InterruptionCause.SUSPENDED if suspended else known


def is_pending(session: Session) -> bool:
    """Return whether the session has open work that start-up must recover."""
    return session.phase in OPEN_PHASES or (
        session.phase == Phase.IDLE and bool(session.queue or session.compressing)
    )


def is_hidden(session: Session, seq: int, offset: int) -> bool:
    """Return whether the n-th message of a record was undone later."""
    return any(span[:2] <= (seq, offset) and seq < span[2] for span in session.hidden)


def root_of(session: Session) -> SessionId:
    return session.root or session.id
