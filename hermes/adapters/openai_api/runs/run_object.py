"""A turn as a run: its state, and its events under their public names. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hermes.adapters.http import problem
from hermes.adapters.http.caller import shown_failure
from hermes.adapters.http.presentation import JsonObject, plain
from hermes.adapters.openai_api.turns import pending, turn_event
from hermes.adapters.openai_api.turns.turn_follower import TurnUpdate
from hermes.adapters.openai_api.turns.turn_view import (
    calls_of,
    end_of,
    failure_of,
    kept_with,
    received_in,
    said,
    status_of,
    usage_of,
)
from hermes.domain.events import CallAsked, TurnGaveUp
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.read.views import TurnRecord
from hermes.domain.records import (
    MessageReceived,
    ModelReplied,
    TurnFailed,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
)
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.values import dataclass

Named = tuple[str, JsonObject]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunObject:
    id: str
    turn: TurnId
    session: SessionId  # current session
    records: Sequence[TurnRecord]
    gave_up: TurnGaveUp | None = None
    asked: CallAsked | None = None

    def object(self) -> JsonObject:
        received, end = received_in(self.records), end_of(self.records)
        failure = failure_of(self.records, self.gave_up)
        return {
            "run_id": self.id,
            "object": "run",
            "status": self.status,
            "session_id": self.session,
            "turn_id": self.turn,
            "created_at": received.at if received is not None else None,
            "ended_at": end.at if end is not None else None,
            "output": said(end.message)[0] if isinstance(end, TurnFinished) else None,
            "tool_calls": _client_calls(end) if isinstance(end, TurnFinished) else [],
            "usage": plain(usage_of(self.records)),
            "error": error_of(failure) if failure is not None else None,
            "pending": pending.field(self.asked) if self.asked is not None else None,
            "metadata": kept_with(self.records).get("metadata", {}),
        }

    @property
    def status(self) -> str:
        status = status_of(self.records, self.gave_up)
        if status == "running" and self.asked is not None:
            return "waiting_for_approval" if self.asked.approval else "waiting_for_answer"
        return status


def error_of(failure: Failure) -> JsonObject:
    found = problem.of_failure(failure, keyed=False)
    return {"code": found.code, "message": shown_failure(failure).message}


# ---------------------------------------------------------------- events


def place_of(update: TurnRecord) -> str:
    """Return the id of a stored event: the position of its record."""
    return f"{update.session}:{update.seq}"


def is_last(update: TurnUpdate) -> bool:
    return isinstance(update, TurnGaveUp) or (
        isinstance(update, TurnRecord) and isinstance(update.record, TurnFinished | TurnFailed)
    )


def event_of(update: TurnUpdate, so_far: Sequence[TurnRecord]) -> Named | None:
    """Return the event of a record or live event; `so_far` are the records up to it."""
    match update:
        case str():
            return "message.delta", {"text": update}
        case TurnGaveUp(failure=failure):
            return _failed(failure)
        case TurnRecord():
            return _of_record(update, so_far)
        case _:
            return turn_event.of_event(update)


def _of_record(update: TurnRecord, so_far: Sequence[TurnRecord]) -> Named | None:
    match update.record:
        case MessageReceived():
            return "run.accepted", {}
        case TurnStarted() as started:
            return "run.started", {"attempt": started.attempt}
        case TurnInterrupted() as cut:
            return "run.interrupted", {"reason": cut.reason}
        case ModelReplied() as replied:
            text, calls = said(replied.message)
            return "message.completed", {"text": text, "tool_calls": _shown(calls)}
        case TurnFinished() as end:
            usage = plain(usage_of(so_far))
            return "run.completed", {
                "output": said(end.message)[0],
                "tool_calls": _client_calls(end),
                "model": end.model,
                "finish_reason": end.finish_reason,
                "usage": usage,
            }
        case TurnFailed() as end:
            return _failed(end.failure)
        case record:
            return turn_event.of_record(record, update.session, calls_of(so_far))


def _client_calls(end: TurnFinished) -> list[JsonObject]:
    """Return the calls that the client runs."""
    return _shown(said(end.message)[1])


def _shown(calls: Sequence[Mapping[str, Any]]) -> list[JsonObject]:
    return [{"call_id": call["id"], **call["function"]} for call in calls]


def _failed(failure: Failure) -> Named:
    cancelled = failure.kind is FailureKind.CANCELLED
    return ("run.cancelled" if cancelled else "run.failed"), {"error": error_of(failure)}
