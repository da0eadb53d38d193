"""Output items of a response: texts as messages, server tools as `mcp_call`, client tools as `function_call`. Pure.

A client runs every `function_call` it is shown, so a tool that ran on the server is never one. A turn ends with the
calls that its client runs: they are in the message of its end. The id of an item contains the response, so that a
client can refer to the item later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.openai_api.turns.turn_view import said, text_of
from hermes.domain.ids import RESPONSE, TurnToken, decode_token
from hermes.domain.read.views import TurnRecord
from hermes.domain.records import ModelReplied, ToolFinished, TurnFinished
from hermes.domain.turn.tool_call import CallOutcome

SERVER_LABEL: Final = "hermes"
_ITEM_ID: Final = re.compile(r"(?:msg|mcp|fc)_([\w-]+?)_(?:asked_[0-9a-f]{8}|[0-9]+(?:_[0-9]+)?)")


class OutputItems:
    """Items of one response, in order. Each has its place in `output`."""

    def __init__(self, response: str) -> None:
        self.items: list[JsonObject] = []
        self._response = response.removeprefix(RESPONSE)
        self._replies = 0
        self._open: dict[str, int] = {}  # place of a call without a result, by the model's call id

    @property
    def place(self) -> int:
        """Place of the next item."""
        return len(self.items)

    def message_id(self) -> str:
        return f"msg_{self._response}_{self._replies}"

    def add_message(self, text: str) -> JsonObject:
        self.items.append(message_item(self.message_id(), text))
        return self.items[-1]

    def add_calls(
        self, calls: Sequence[Mapping[str, Any]], *, for_client: bool = False
    ) -> list[tuple[int, JsonObject]]:
        """Add the calls of a reply, which ends the reply. Returns them with their places."""
        first = self.place
        for index, call in enumerate(calls):
            name = f"{self._response}_{self._replies}_{index}"
            if for_client:
                self.items.append(_client_call_item(f"fc_{name}", call))
                continue
            self._open[call["id"]] = self.place
            self.items.append(_call_item(f"mcp_{name}", call["function"]))
        self._replies += 1
        return list(enumerate(self.items[first:], first))

    def finish_call(self, finished: ToolFinished) -> tuple[int, JsonObject] | None:
        """Add the result of a call. Returns its item and place; None if the call is unknown."""
        place = self._open.pop(finished.call, None)
        if place is None:
            return None
        self.items[place] = {**self.items[place], **_result(finished)}
        return place, self.items[place]

    def end_calls(self) -> list[tuple[int, JsonObject]]:
        """Mark calls that have no result when the response is over."""
        ended = []
        for place in self._open.values():
            self.items[place] = {**self.items[place], "status": "incomplete"}
            ended.append((place, self.items[place]))
        self._open.clear()
        return ended


def output_of(records: Sequence[TurnRecord], response: str, *, over: bool) -> list[JsonObject]:
    output = OutputItems(response)
    for each in records:
        match each.record:
            case ModelReplied(message=message) | TurnFinished(message=message):
                text, calls = said(message)
                if text:
                    output.add_message(text)
                output.add_calls(calls, for_client=isinstance(each.record, TurnFinished))
            case ToolFinished() as finished:
                output.finish_call(finished)
            case _:
                pass
    if over:
        output.end_calls()
    return output.items


def response_of_item(name: str) -> TurnToken | None:
    """Return the response of an item id. None: Hermes did not make this id."""
    found = _ITEM_ID.fullmatch(name)
    return decode_token(RESPONSE + found[1], RESPONSE) if found else None


def question_item(response: str, call: str, words: str) -> JsonObject:
    """Return the message that asks the question of a call."""
    mark = blake2b(call.encode(), digest_size=4).hexdigest()  # the model chose the call's id
    return message_item(f"msg_{response.removeprefix(RESPONSE)}_asked_{mark}", words)


def message_item(name: str, text: str) -> JsonObject:
    return {
        "id": name,
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [text_part(text)],
    }


def text_part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _call_item(name: str, function: Mapping[str, Any]) -> JsonObject:
    return {
        "id": name,
        "type": "mcp_call",
        "server_label": SERVER_LABEL,
        "name": function["name"],
        "arguments": function["arguments"],
        "approval_request_id": None,
        "output": None,
        "error": None,
        "status": "in_progress",
    }


def _client_call_item(name: str, call: Mapping[str, Any]) -> JsonObject:
    return {
        "id": name,
        "type": "function_call",
        "call_id": call["id"],
        "name": call["function"]["name"],
        "arguments": call["function"]["arguments"],
        "status": "completed",
    }


def _result(finished: ToolFinished) -> JsonObject:
    text = text_of(finished.message)
    if finished.outcome is CallOutcome.OK:
        return {"output": text, "status": "completed"}
    error = {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": text}]}
    return {"error": error, "status": "failed"}
