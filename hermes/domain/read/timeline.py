"""Timeline of a session: the records that changed its state, in order. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from hermes.domain.ids import Seq, SessionId, TurnId
from hermes.domain.read.reader import Reader
from hermes.domain.records import (
    Answered,
    Asked,
    BadRecord,
    ChildStarted,
    CompressionFailed,
    CompressionStarted,
    Continued,
    Ended,
    LogEntry,
    MarkedResumePending,
    MessageReceived,
    ModelRetried,
    Preferred,
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
from hermes.domain.values import dataclass


class TimelineKind(StrEnum):
    STARTED = "session started"
    MESSAGE = "message received"
    TURN = "turn started"
    RETRIED = "model call failed"
    TOOL = "tool started"
    TOOL_DONE = "tool finished"
    ASKED = "question asked"
    ANSWERED = "question answered"
    FINISHED = "turn finished"
    FAILED = "turn failed"
    INTERRUPTED = "turn interrupted"
    STOP_ANNOUNCED = "stop announced"
    SUSPENDED = "suspended"
    RESUMED = "resumed"
    ENDED = "session ended"
    RESET_BLOCKED = "reset delayed"
    CONTINUED = "continued elsewhere"
    CHILD = "child session started"
    PREFERRED = "preference changed"
    UNDONE = "turns undone"
    COMPRESSING = "compression started"
    NOT_COMPRESSED = "compression failed"
    DAMAGED = "damaged record"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineStep:
    seq: Seq
    at: float
    kind: TimelineKind
    detail: str = ""
    turn: TurnId | None = None


def read_timeline(reader: Reader, session: SessionId, limit: int) -> list[TimelineStep]:
    """Return the last steps of a session, oldest first. Never runs on the event loop."""
    head = reader.head(session)
    end = head.next_seq if head is not None else 0
    first = max(0, end - limit)
    return timeline(reader.log(session, Seq(first), end - first))


def timeline(entries: Iterable[LogEntry]) -> list[TimelineStep]:
    steps = []
    for entry in entries:
        if isinstance(entry.record, BadRecord):
            steps.append(TimelineStep(seq=entry.seq, at=0.0, kind=TimelineKind.DAMAGED))
        elif (found := _described(entry.record)) is not None:
            kind, detail = found
            turn = getattr(entry.record, "turn", None)
            step = TimelineStep(
                seq=entry.seq,
                at=entry.record.at,
                kind=kind,
                detail=detail,
                turn=TurnId(turn) if isinstance(turn, str) else None,
            )
            steps.append(step)
    return steps


def _described(record: Record) -> tuple[TimelineKind, str] | None:
    """Return kind and detail of a record's step; None if it has none."""
    return _of_turn(record) or _of_session(record)


def _of_turn(record: Record) -> tuple[TimelineKind, str] | None:
    match record:
        case MessageReceived(source=source):
            return TimelineKind.MESSAGE, source.name or source.by
        case TurnStarted(attempt=attempt):
            return TimelineKind.TURN, f"attempt {attempt}" if attempt > 1 else ""
        case ModelRetried(model=model, failure=failure):
            return TimelineKind.RETRIED, f"{model}: {failure.kind}"
        case ToolStarted(call=call):
            return TimelineKind.TOOL, call
        case ToolFinished(name=name, call=call, outcome=outcome, took_s=took_s):
            return TimelineKind.TOOL_DONE, f"{name or call}: {outcome} after {took_s:.1f} s"
        case Answered(answer=answer, name=name, by=by):
            return TimelineKind.ANSWERED, " by ".join(filter(None, (answer[:80], name or by)))
        case TurnFinished(model=model):
            return TimelineKind.FINISHED, model
        case TurnFailed(failure=failure):
            return TimelineKind.FAILED, f"{failure.kind}: {failure.message}"
        case TurnInterrupted(reason=reason):
            return TimelineKind.INTERRUPTED, reason
        case Asked(call=call):
            return TimelineKind.ASKED, call
        case _:
            return None


def _of_session(record: Record) -> tuple[TimelineKind, str] | None:
    match record:
        case Preferred(reason=reason):
            return TimelineKind.PREFERRED, reason
        case Continued(successor=successor, reason=reason):
            return TimelineKind.CONTINUED, f"in {successor}: {reason}"
        case ChildStarted(purpose=purpose, child=child):
            return TimelineKind.CHILD, f"{purpose}: {child}"
        case Undone(turns=turns):
            return TimelineKind.UNDONE, str(turns)
    kind = _REASONED.get(type(record))
    return None if kind is None else (kind, str(getattr(record, "reason", "")))


_REASONED: dict[type, TimelineKind] = {
    SessionStarted: TimelineKind.STARTED,
    MarkedResumePending: TimelineKind.STOP_ANNOUNCED,
    Suspended: TimelineKind.SUSPENDED,
    Resumed: TimelineKind.RESUMED,
    Ended: TimelineKind.ENDED,
    ResetBlocked: TimelineKind.RESET_BLOCKED,
    CompressionStarted: TimelineKind.COMPRESSING,
    CompressionFailed: TimelineKind.NOT_COMPRESSED,
}
