"""State of a turn derived from its records: messages, calls, status. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hermes.domain.events import TurnGaveUp
from hermes.domain.ids import TurnId
from hermes.domain.read.views import TurnRecord
from hermes.domain.records import (
    ContextCarried,
    InnerCalled,
    MessageReceived,
    ModelReplied,
    TurnFailed,
    TurnFinished,
    TurnStarted,
)
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.tool_call import Call
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.turn.usage import Usage


def turn_of(records: Sequence[TurnRecord], turn: TurnId) -> TurnId:
    """Return the turn of these records: a message that became part of another turn has that one's."""
    turns = (getattr(each.record, "turn", None) for each in records if not isinstance(each.record, ContextCarried))
    return next(turns, None) or turn


def said(message: EncodedMessage) -> tuple[str, list[Mapping[str, Any]]]:
    """Return the text and the tool calls of a model's message."""
    fields = json.loads(message)
    return fields.get("content") or "", list(fields.get("tool_calls") or ())


def text_of(message: EncodedMessage) -> str:
    content = json.loads(message).get("content")
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def calls_of(records: Sequence[TurnRecord]) -> dict[str, Call]:
    asked = {call.id: call for each in records if isinstance(each.record, ModelReplied) for call in each.record.calls}
    inner = (each.record.call for each in records if isinstance(each.record, InnerCalled))
    return asked | {call.id: call for call in inner}


def received_in(records: Sequence[TurnRecord]) -> MessageReceived | None:
    return next((each.record for each in records if isinstance(each.record, MessageReceived)), None)


def kept_with(records: Sequence[TurnRecord]) -> Mapping[str, Any]:
    """Return what the surface stored with the turn when it was accepted."""
    received = received_in(records)
    kept: Mapping[str, Any] = json.loads(received.options).get("hermes", {}) if received is not None else {}
    return kept


def usage_of(records: Sequence[TurnRecord]) -> Usage:
    used = (each.record.usage for each in records if isinstance(each.record, ModelReplied | TurnFinished))
    return sum(used, Usage())


def end_of(records: Sequence[TurnRecord]) -> TurnFinished | TurnFailed | None:
    last = records[-1].record if records else None
    return last if isinstance(last, TurnFinished | TurnFailed) else None


def failure_of(records: Sequence[TurnRecord], gave_up: TurnGaveUp | None) -> Failure | None:
    end = end_of(records)
    if isinstance(end, TurnFailed):
        return end.failure
    return gave_up.failure if gave_up is not None and end is None else None


def has_started(records: Sequence[TurnRecord]) -> bool:
    """Return True if the turn has started here, or in the session that this one continues."""
    turn = turn_of(records, TurnId(""))
    carried = (each.record.turn for each in records if isinstance(each.record, ContextCarried))
    return any(isinstance(each.record, TurnStarted) for each in records) or any(
        moved is not None and moved.id == turn for moved in carried
    )


def status_of(records: Sequence[TurnRecord], gave_up: TurnGaveUp | None) -> str:
    """Return queued, running, completed, failed or cancelled."""
    failure = failure_of(records, gave_up)
    if failure is not None:
        return "cancelled" if failure.kind is FailureKind.CANCELLED else "failed"
    if end_of(records) is not None:
        return "completed"
    return "running" if has_started(records) else "queued"
