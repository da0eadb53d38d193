"""OpenAI's Response built from the records of a turn. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from hermes.adapters.http import problem
from hermes.adapters.http.key_scope import may_approve
from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.openai_api.responses.response_items import output_of, question_item
from hermes.adapters.openai_api.turns import pending
from hermes.adapters.openai_api.turns.turn_view import (
    end_of,
    failure_of,
    kept_with,
    received_in,
    status_of,
    usage_of,
)
from hermes.domain.events import CallAsked, TurnGaveUp
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.read.views import TurnRecord
from hermes.domain.records import MessageReceived, TurnFinished
from hermes.domain.turn.usage import Usage
from hermes.domain.values import dataclass

_CUT_SHORT = {"length": "max_output_tokens", "content_filter": "content_filter"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """Builder of one response."""

    id: str
    turn: TurnId
    session: SessionId
    notice: str = ""
    may_approve: bool = field(default_factory=may_approve)  # the client may approve tool calls

    def object(
        self,
        records: Sequence[TurnRecord],
        *,
        gave_up: TurnGaveUp | None = None,
        asked: CallAsked | None = None,
    ) -> JsonObject:
        kept = kept_with(records)
        received = received_in(records)
        end = end_of(records)
        cut = _CUT_SHORT.get(end.finish_reason) if isinstance(end, TurnFinished) else None
        status = status_of(records, gave_up)
        over = asked is not None or status not in ("queued", "running")
        question = [self.question(asked)] if asked else []
        return {
            "id": self.id,
            "object": "response",
            "created_at": int(received.at) if received is not None else 0,
            "status": _status(status, cut=cut is not None, asked=asked is not None),
            "background": kept.get("background", False),
            "conversation": {"id": kept["conversation"]} if "conversation" in kept else None,
            "error": _error(records, gave_up),
            "incomplete_details": {"reason": cut} if cut else None,
            "instructions": kept.get("instructions"),
            "model": kept.get("model", ""),
            "output": [*output_of(records, self.id, over=over), *question],
            "previous_response_id": kept.get("previous_response_id"),
            "store": kept.get("store", True),
            "metadata": kept.get("metadata", {}),
            "usage": _usage(usage_of(records)) if over else None,
            **_sampling(received),
            "truncation": kept.get("truncation", "auto"),
            **_FIXED,
            "hermes": self._hermes(asked),
        }

    def question(self, asked: CallAsked) -> JsonObject:
        """Build the open question as a message. The next message of the session answers it."""
        words = pending.in_words(asked, self.turn, may_approve=self.may_approve)
        return question_item(self.id, asked.call, words)

    def _hermes(self, asked: CallAsked | None) -> JsonObject:
        notice = {"notice": self.notice} if self.notice else {}
        waits = {"pending": pending.field(asked)} if asked is not None else {}
        return {"session_id": self.session, "turn_id": self.turn, **notice, **waits}


_FIXED: Mapping[str, Any] = {
    "max_tool_calls": None,
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}


def _status(status: str, *, cut: bool, asked: bool) -> str:
    """Return OpenAI's status. A response that ends with a question is complete: its client sends the next message."""
    if cut:
        return "incomplete"
    return "completed" if asked else {"running": "in_progress"}.get(status, status)


def _sampling(received: MessageReceived | None) -> JsonObject:
    options = json.loads(received.options) if received is not None else {}
    return {
        "temperature": options.get("temperature"),
        "top_p": options.get("top_p"),
        "max_output_tokens": options.get("max_completion_tokens"),
        "user": options.get("user"),
        "reasoning": {"effort": options.get("reasoning_effort"), "summary": None},
        "text": {"format": _format(options.get("response_format")), "verbosity": options.get("verbosity")},
    }


def _format(wanted: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if wanted is None:
        return {"type": "text"}
    return {"type": wanted["type"], **wanted.get("json_schema", {})}


def _error(records: Sequence[TurnRecord], gave_up: TurnGaveUp | None) -> JsonObject | None:
    failure = failure_of(records, gave_up)
    if failure is None:
        return None
    found = problem.of_failure(failure, keyed=False)
    return {"code": found.code, "message": found.message}


def _usage(usage: Usage) -> JsonObject:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
