"""Answer of the OpenAI Responses API, assembled from its streamed events."""

from __future__ import annotations

from typing import Any

from hermes.agent.models.failure import from_error_object, malformed, model_error
from hermes.agent.models.protocols.completion import ANSWER_MAX_BYTES, CALLS_MAX, count, decode, mapping, storable
from hermes.agent.models.protocols.wire import StreamedAnswer
from hermes.domain.errors import ModelError
from hermes.domain.turn.turn_failure import FailureKind
from hermes.domain.turn.usage import Usage
from hermes.ports.agent import ModelDone

_TEXT = frozenset({"response.output_text.delta", "response.refusal.delta"})
_THOUGHT = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_ENDS = frozenset({"response.completed", "response.incomplete"})
_KEPT = ("type", "id", "summary", "content", "encrypted_content")  # of a reasoning item

Item = dict[str, Any]


class StreamedResponse(StreamedAnswer):
    def __init__(self, *, model: str, secret: str = "") -> None:
        self.over = False
        self.thought = ""
        self.size = 0
        self._model = model
        self._secret = secret
        self._items: list[Item] = []
        self._end: Item | None = None

    def add(self, data: bytes) -> str:
        self.thought = ""
        if data == b"[DONE]":  # of other servers
            return ""
        event = decode(data)
        kind = event.get("type")
        if kind in _TEXT:
            return self._grown(event.get("delta"))
        if kind in _THOUGHT:
            self.thought = self._grown(event.get("delta"))
        elif kind == "response.reasoning_summary_part.added" and self.size:
            self.thought = "\n\n"
        elif kind == "response.output_item.done":
            self._items.append(mapping(event.get("item")))
            if len(self._items) > 2 * CALLS_MAX:
                raise malformed(f"the answer has more than {2 * CALLS_MAX} items")
        elif kind in _ENDS:
            self._end = mapping(event.get("response"))
            self.over = True
        elif kind == "response.failed":
            raise self._failed(mapping(event.get("response")).get("error"))
        elif kind == "error":
            raise self._failed(event)
        elif event.get("error"):
            raise self._failed(event["error"])
        return ""

    def done(self) -> ModelDone:
        if self._end is None:
            raise malformed("the answer is incomplete: it has no end")
        cut = mapping(self._end.get("incomplete_details")).get("reason")
        if cut == "content_filter":
            raise model_error(FailureKind.POLICY, "the provider's content filter stopped the answer")
        items = self._items or [mapping(item) for item in self._end.get("output") or ()]
        calls = tuple(_tool_call(item) for item in items if item.get("type") == "function_call")
        return ModelDone(
            finish_reason="length" if cut else "tool_calls" if calls else "stop",
            model=storable(str(self._end.get("model") or self._model)),
            usage=_usage(mapping(self._end.get("usage"))),
            tool_calls=calls,
            reasoning=tuple(
                {name: item[name] for name in _KEPT if item.get(name) is not None}
                for item in items
                if item.get("type") == "reasoning" and item.get("encrypted_content")
            ),
        )

    def _failed(self, error: object) -> ModelError:
        return ModelError(from_error_object(error, secret=self._secret))

    def _grown(self, value: object) -> str:
        text = storable(str(value or ""))
        self.size += len(text)
        if self.size > ANSWER_MAX_BYTES:
            raise malformed("the answer has no end: it was stopped at 4 MiB")
        return text


def _usage(usage: Item) -> Usage:
    return Usage(
        prompt_tokens=count(usage.get("input_tokens")),
        completion_tokens=count(usage.get("output_tokens")),
        cached_tokens=count(mapping(usage.get("input_tokens_details")).get("cached_tokens")),
    )


def _tool_call(item: Item) -> Item:
    function = {
        "name": storable(str(item.get("name") or "")),
        "arguments": storable(str(item.get("arguments") or "")),
    }
    return {"id": storable(str(item.get("call_id") or "")), "type": "function", "function": function}
