"""Session state as a fold over its records: `evolve` applies one record, `replay` rebuilds it from the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from hermes.domain.cause.cause import EndCause, InterruptionCause
from hermes.domain.cause.legacy_reason import compression_cause
from hermes.domain.child.child import MAX_LINKS, ChildLink
from hermes.domain.child.review_topic import ReviewTopic
from hermes.domain.ids import Seq, SessionId, SessionKey
from hermes.domain.records import (
    Amended,
    Answered,
    Asked,
    AuthorityDropped,
    BadRecord,
    ChildStarted,
    CompressionFailed,
    CompressionStarted,
    ContextCarried,
    Continued,
    Ended,
    GoalChanged,
    HandedOver,
    InnerCalled,
    Instructed,
    LogEntry,
    MarkedResumePending,
    Merged,
    MessageReceived,
    ModelReplied,
    ModelRetried,
    Posted,
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
from hermes.domain.session.fold import call_fold, turn_fold
from hermes.domain.session.fold.call_fold import with_phase_of_calls
from hermes.domain.session.state import Phase, Preferences, Session, instructions_hash
from hermes.domain.source import Source
from hermes.domain.values import amend, replace

MAX_POSTED: Final = 10  # posts that wait for the next turn; older ones are only in the chat


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
        assignment=started.assignment,
        preferences=Preferences(model=started.assignment.model if started.assignment else ""),
    )


def evolve(session: Session, record: Record) -> Session:
    """Return the session after one more record."""
    after = with_phase_of_calls(_CHANGES[type(record)](session, record))
    since = session.since if after.phase is session.phase else record.at
    change = replace if after is session else amend  # a change returns the session itself or a copy of its own
    return change(after, next_seq=Seq(session.next_seq + 1), since=since)


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
    hidden = (*earlier, (record.seq, record.offset, session.next_seq))
    return replace(session, hidden=hidden, context_tokens=0, handed=())


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
        turn_fold.waiting_turn(each, record.place if each.source.automatic else each.source.place)
        for each in record.waiting
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
        instructed=instructions_hash(record.instructions),
        handed=record.handed,
        posted=record.posted,
        unreviewed_turns=record.unreviewed_turns,
        unreviewed_calls=record.unreviewed_calls,
        assignment=record.assignment,
        goal=record.goal,
    )


def _handed_over(session: Session, record: HandedOver) -> Session:
    # The prompt holds the memory of the person who wrote before: it is built again.
    return replace(
        session, handover=record.handover, place=record.handover.place, active_at=record.at, prompted=False
    )


def _posted(session: Session, record: Posted) -> Session:
    return replace(session, posted=(*session.posted, record.shown)[-MAX_POSTED:])


def _child_started(session: Session, record: ChildStarted) -> Session:
    """Remember the child. The topics of a review start their counts again."""
    link = ChildLink(session=record.child, purpose=record.purpose)
    return replace(
        session,
        children=(*session.children, link)[-MAX_LINKS:],
        unreviewed_turns=0 if ReviewTopic.MEMORY in record.topics else session.unreviewed_turns,
        unreviewed_calls=0 if ReviewTopic.SKILLS in record.topics else session.unreviewed_calls,
        turn=call_fold.with_child(session.turn, record),
    )


def _without_authority(session: Session, _record: AuthorityDropped) -> Session:
    title_only = Preferences(title=session.preferences.title)
    return replace(session, preferences=title_only, grants=(), prompted=False, instructed=b"")


_CHANGES: Mapping[type, Callable[[Session, Any], Session]] = {
    SessionStarted: lambda session, _: session,
    MessageReceived: turn_fold.received,
    Amended: turn_fold.amended,
    TurnStarted: turn_fold.turn_started,
    Merged: turn_fold.merged,
    PromptBuilt: lambda session, _: replace(session, prompted=True),
    Instructed: lambda session, record: replace(session, instructed=instructions_hash(record.message)),
    ModelReplied: call_fold.model_replied,
    ModelRetried: lambda session, _: session,
    ToolStarted: call_fold.tool_started,
    InnerCalled: call_fold.inner_called,
    ToolFinished: call_fold.tool_finished,
    Asked: call_fold.asked,
    Answered: call_fold.answered,
    TurnFinished: turn_fold.turn_finished,
    TurnFailed: turn_fold.turn_failed,
    TurnInterrupted: turn_fold.turn_interrupted,
    MarkedResumePending: turn_fold.marked_resume_pending,
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
    HandedOver: _handed_over,
    Posted: _posted,
    ChildStarted: _child_started,
    GoalChanged: lambda session, record: replace(session, goal=record.goal),
}


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
