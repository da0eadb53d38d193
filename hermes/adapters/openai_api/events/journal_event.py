"""Events of all sessions by their public names, the same names as in runs.

Stored events come from the journal, and the position of their record is their id. Others are live only.
"""

from __future__ import annotations

from collections import OrderedDict

from hermes.adapters.http.presentation import JsonObject, plain
from hermes.adapters.openai_api.runs.run_object import event_of
from hermes.adapters.openai_api.turns import turn_event
from hermes.domain.events import (
    ActorFailed,
    CallProgress,
    Event,
    Notice,
    PhaseChanged,
    ProcessEnded,
    ProcessStarted,
    ReasoningDelta,
    Steered,
    TextDelta,
    TextReset,
)
from hermes.domain.ids import RUN, SessionId, TurnId, TurnToken
from hermes.domain.read.views import JournalEntry, TurnRecord
from hermes.domain.records import (
    CompressionFailed,
    CompressionStarted,
    ContextCarried,
    Continued,
    Ended,
    HandedOver,
    MessageReceived,
    ModelReplied,
    Posted,
    Preferred,
    Resumed,
    SessionStarted,
    Suspended,
    TurnFailed,
    TurnFinished,
    Undone,
)
from hermes.ports.sessions import Sessions

Named = tuple[str, JsonObject]
_MAX_TURNS = 1_000  # whose replies are remembered


def session_event(entry: JournalEntry) -> Named | None:
    """Return the event of a record about a session itself; None if it is about a turn."""
    match entry.record:
        case SessionStarted(reason=reason, parent=parent):
            return "session.started", {"reason": reason, "parent": parent}
        case Ended(reason=reason, cause=cause):
            return "session.ended", {"reason": reason, "cause": cause}
        case Continued(successor=successor, reason=reason):
            return "session.continued", {"successor": successor, "reason": reason}
        case Suspended(reason=reason):
            return "session.suspended", {"reason": reason}
        case Resumed(reason=reason):
            return "session.resumed", {"reason": reason}
        case Preferred(preferences=preferences):
            return "session.updated", {"preferences": plain(preferences)}
        case Undone(turns=turns):
            return "session.undone", {"turns": turns}
        case Posted(id=name):
            return "session.posted", {"message_id": name}
        case HandedOver(handover=moved):
            return "session.handed_over", {"to": plain(moved.place), "reason": moved.reason}
        case CompressionStarted(reason=reason):
            return "session.compressing", {"reason": reason}
        case CompressionFailed(reason=reason):
            return "session.compression_failed", {"reason": reason}
        case _:
            return None


def live_event(event: Event) -> Named | None:
    """Return the event that no record stands for; None if a record does."""
    match event:
        case TextDelta(text=text):
            return "message.delta", {"text": text}
        case ReasoningDelta(text=text):
            return "reasoning.delta", {"text": text}
        case TextReset() | CallProgress() | Notice() | Steered():
            return turn_event.of_event(event)
        case PhaseChanged(phase=phase, reason=reason):
            return "session.state", {"phase": phase, "reason": reason}
        case ProcessStarted(process=process, command=command):
            return "process.started", {"process_id": process, "command": command}
        case ProcessEnded(process=process, command=command, end=end):
            return "process.ended", {"process_id": process, "command": command, "end": end}
        case ActorFailed(name=name, problem=problem, verdict=verdict):
            return "actor.failed", {"name": name, "problem": problem, "verdict": verdict}
        case _:
            return None


def ids_of(value: JournalEntry | Event) -> JsonObject:
    """Return session, turn and run of a record or a live event."""
    session = SessionId(getattr(value, "session", ""))
    turn = getattr(value.record if isinstance(value, JournalEntry) else value, "turn", None)
    if not isinstance(turn, str):
        return {"session_id": session}
    return {
        "session_id": session,
        "turn_id": turn,
        "run_id": TurnToken(session=session, turn=TurnId(turn)).text(RUN),
    }


class JournalEvents:
    """Names the records of all sessions. Remembers the replies of open turns, because later events need them."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._replies: OrderedDict[TurnId, list[TurnRecord]] = OrderedDict()

    async def of_entry(self, entry: JournalEntry) -> Named | None:
        if (named := session_event(entry)) is not None:
            return named
        turn = getattr(entry.record, "turn", None)
        if not isinstance(turn, str) or isinstance(entry.record, ContextCarried):
            return None
        update = TurnRecord(session=entry.session, seq=entry.seq, record=entry.record)
        replies = await self._replies_before(update, TurnId(turn))
        if isinstance(entry.record, ModelReplied):
            replies.append(update)
            so_far = replies
        else:
            so_far = [*replies, update]
        if isinstance(entry.record, TurnFinished | TurnFailed):
            self._replies.pop(TurnId(turn), None)
        return event_of(update, so_far)

    async def _replies_before(self, update: TurnRecord, turn: TurnId) -> list[TurnRecord]:
        if turn not in self._replies:
            begins = isinstance(update.record, MessageReceived)
            self._replies[turn] = [] if begins else await self._stored_replies(update, turn)
            while len(self._replies) > _MAX_TURNS:
                self._replies.popitem(last=False)
        return self._replies[turn]

    async def _stored_replies(self, update: TurnRecord, turn: TurnId) -> list[TurnRecord]:
        records = await self._sessions.records(update.session, turn)
        return [
            each
            for each in records
            if isinstance(each.record, ModelReplied) and (each.session != update.session or each.seq < update.seq)
        ]
