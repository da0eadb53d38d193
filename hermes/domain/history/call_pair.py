"""Pairs of tool calls and results in the messages of a client. Pure.

A model refuses a conversation in which a call has no result, or more than one, or a result has no call. Clients send
such messages, so they are repaired before they are stored. The last result of a call counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hermes.domain.session.builder import encode
from hermes.domain.session.note import NO_RESULT
from hermes.domain.turn.message import EncodedMessage

_MARK = b'"tool'  # in every message with calls or a result


def paired(messages: Sequence[EncodedMessage]) -> tuple[EncodedMessage, ...]:
    """Return a whole history in which each call is followed by its one result."""
    result: list[EncodedMessage] = []
    outcomes: dict[str, EncodedMessage] = {}  # of the calls of the last message
    for message in messages:
        fields = _fields(message)
        if fields.get("role") == "tool":
            if fields["tool_call_id"] in outcomes:
                outcomes[fields["tool_call_id"]] = message
            continue
        result += outcomes.values()
        calls = {call["id"]: call for call in fields.get("tool_calls") or ()}
        outcomes = {call: encode(role="tool", tool_call_id=call, content=NO_RESULT) for call in calls}
        result.append(_with_calls(message, fields, list(calls.values())))
    return (*result, *outcomes.values())


def without_repeats(messages: Sequence[EncodedMessage]) -> tuple[EncodedMessage, ...]:
    """Return new messages with one result for each call."""
    answers = [_answers(message) for message in messages]
    last = {call: place for place, call in enumerate(answers)}
    return tuple(each for n, each in enumerate(messages) if not answers[n] or last[answers[n]] == n)


def is_answered(history: Sequence[EncodedMessage], messages: Iterable[EncodedMessage]) -> bool:
    """Return whether one of the messages is the result of a call that ends the history."""
    fields = json.loads(history[-1])
    calls = {call["id"] for call in fields.get("tool_calls") or ()}
    return any(_answers(message) in calls for message in messages)


def _fields(message: EncodedMessage) -> Mapping[str, Any]:
    """Return the fields of a message with calls or a result; of others, nothing is needed."""
    fields: Mapping[str, Any] = json.loads(message) if message.find(_MARK) >= 0 else {}
    return fields


def _answers(message: EncodedMessage) -> str:
    """Return the call whose result the message is; empty if it is none."""
    fields = _fields(message)
    return str(fields["tool_call_id"]) if fields.get("role") == "tool" else ""


def _with_calls(message: EncodedMessage, fields: Mapping[str, Any], calls: list[Any]) -> EncodedMessage:
    given = fields.get("tool_calls") or []
    return message if len(given) == len(calls) else encode(**{**fields, "tool_calls": calls})
