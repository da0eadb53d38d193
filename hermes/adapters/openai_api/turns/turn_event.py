"""Events of a turn besides text, by their public names: `tool.started`, `approval.request` and so on.

Live events and stored ones have the same names and fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from hermes.adapters.http.caller import is_owner
from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.openai_api.turns.pending import shown_choices
from hermes.domain.events import (
    CallAnswered,
    CallAsked,
    CallBegan,
    CallEnded,
    CallProgress,
    Notice,
    SessionMoved,
    Steered,
    TextReset,
)
from hermes.domain.ids import SessionId
from hermes.domain.records import Answered, Asked, ContextCarried, Record, ToolFinished, ToolStarted
from hermes.domain.turn.tool_call import Call

Shown: TypeAlias = (
    CallBegan | CallProgress | CallEnded | CallAsked | CallAnswered | Steered | Notice | SessionMoved | TextReset
)
Named: TypeAlias = tuple[str, JsonObject]
_UNKNOWN: Final = Call(id="", name="")
_MODEL_WAITS: Final = "The model has not answered yet; Hermes keeps trying."


def of_event(event: Shown) -> Named:
    match event:
        case CallBegan():
            return "tool.started", {"call_id": event.call, "name": event.name, "summary": event.summary}
        case CallProgress():
            return "tool.progress", {"call_id": event.call, "text": event.text}
        case CallEnded():
            return "tool.completed", _ended(event.call, event.name, event.outcome, event.took_s, event.summary)
        case CallAsked():
            return _asked(
                event.call, event.name, event.question, event.choices, event.summary, approval=event.approval
            )
        case CallAnswered():
            return "answered", _answered(event.call, event.name, event.answer, event.by, event.summary)
        case Steered():
            return "steered", {"message_turn_id": event.message}
        case Notice():
            hides = event.of_model and not is_owner()
            return "notice", {"text": _MODEL_WAITS if hides else event.text}
        case SessionMoved():
            return "session", {"session_id": event.successor, "reason": event.reason}
        case TextReset():
            return "message.reset", {}


def of_record(record: Record, session: SessionId, calls: Mapping[str, Call]) -> Named | None:
    """Return the event of a record; None if it has none. `calls` are those of the turn so far."""
    match record:
        case ToolStarted():
            call = calls.get(record.call, _UNKNOWN)
            return "tool.started", {"call_id": record.call, "name": call.name, "summary": call.summary}
        case ToolFinished():
            summary = calls.get(record.call, _UNKNOWN).summary
            return "tool.completed", _ended(record.call, record.name, record.outcome, record.took_s, summary)
        case Asked():
            call = calls.get(record.call, _UNKNOWN)
            approval = not call.question
            return _asked(record.call, call.name, record.question, record.choices, call.summary, approval=approval)
        case Answered():
            call = calls.get(record.call, _UNKNOWN)
            return "answered", _answered(record.call, call.name, record.answer, record.by, call.summary)
        case ContextCarried():
            return "session", {"session_id": session, "reason": "compression"}
        case _:
            return None


def _asked(call: str, name: str, question: str, choices: tuple[str, ...], summary: str, *, approval: bool) -> Named:
    fields: JsonObject = {
        "call_id": call,
        "name": name,
        "summary": summary,
        "question": question,
        "choices": shown_choices(choices, approval=approval),
    }
    return ("approval.request" if approval else "question"), fields


def _answered(call: str, name: str, answer: str, by: str, summary: str) -> JsonObject:
    return {"call_id": call, "name": name, "summary": summary, "answer": answer, "by": by}


def _ended(call: str, name: str, outcome: str, took_s: float, summary: str) -> JsonObject:
    return {
        "call_id": call,
        "name": name,
        "summary": summary,
        "outcome": str(outcome),
        "took_s": round(took_s, 3),
    }
