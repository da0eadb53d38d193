"""Answer of Anthropic Messages, assembled from its streamed events."""

from __future__ import annotations

import json
from typing import Any

from hermes.agent.models.failure import from_error_object, malformed, model_error
from hermes.agent.models.protocols.completion import ANSWER_MAX_BYTES, CALLS_MAX, count, decode, mapping, storable
from hermes.agent.models.protocols.wire import StreamedAnswer
from hermes.domain.errors import ModelError
from hermes.domain.turn.turn_failure import FailureKind
from hermes.domain.turn.usage import Usage
from hermes.ports.agent import ModelDone

_FINISH = {"max_tokens": "length", "model_context_window_exceeded": "length", "tool_use": "tool_calls"}
_THINKING = ("thinking", "redacted_thinking")

_PROMPT_COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")

Block = dict[str, Any]


class StreamedMessage(StreamedAnswer):
    def __init__(self, *, model: str, secret: str = "") -> None:
        self.over = False
        self.thought = ""
        self.size = 0
        self._model = model
        self._secret = secret
        self._stop_reason = ""
        self._prompt: Block = {}
        self._output_tokens = 0
        self._blocks: dict[int, Block] = {}

    def add(self, data: bytes) -> str:
        self.thought = ""
        event = decode(data)
        match event.get("type"):
            case "message_start":
                self._start(mapping(event.get("message")))
            case "content_block_start":
                return self._begin(_index(event), mapping(event.get("content_block")))
            case "content_block_delta":
                return self._extend(_index(event), mapping(event.get("delta")))
            case "message_delta":
                self._stop_reason = str(mapping(event.get("delta")).get("stop_reason") or self._stop_reason)
                self._add_usage(mapping(event.get("usage")))
            case "message_stop":
                self.over = True
            case "error":
                raise ModelError(from_error_object(event.get("error"), secret=self._secret))
        return ""

    def done(self) -> ModelDone:
        if not self._stop_reason:
            raise malformed("the answer is incomplete: it has no stop reason")
        if self._stop_reason == "refusal":
            raise model_error(FailureKind.POLICY, "the provider's safety filter stopped the answer")
        blocks = list(self._blocks.values())
        calls = tuple(_tool_call(block) for block in blocks if block["type"] == "tool_use")
        if self._stop_reason == "tool_use" and not calls:
            raise malformed("the answer announced tool calls and had none")
        return ModelDone(
            finish_reason=_FINISH.get(self._stop_reason, "stop"),
            model=self._model,
            usage=self._usage(),
            tool_calls=calls,
            reasoning=tuple(block for block in blocks if block["type"] in _THINKING),
        )

    def _start(self, message: Block) -> None:
        self._model = storable(str(message.get("model") or self._model))
        self._prompt = mapping(message.get("usage"))
        self._output_tokens = count(self._prompt.get("output_tokens"))

    def _add_usage(self, usage: Block) -> None:
        """Take the counts at the end of the answer. Converters tell those of the prompt only there."""
        self._output_tokens = count(usage.get("output_tokens")) or self._output_tokens
        self._prompt |= {name: usage[name] for name in _PROMPT_COUNTS if count(usage.get(name))}

    def _begin(self, index: int, block: Block) -> str:
        if len(self._blocks) > 2 * CALLS_MAX:
            raise malformed(f"the answer has more than {CALLS_MAX} blocks")
        kind = block.get("type")
        if kind == "tool_use":
            self._blocks[index] = {**block, "json": ""}
        elif kind in (*_THINKING, "text"):
            self._blocks[index] = dict(block)
        self.thought = self._grown(block.get("thinking"))
        return self._grown(block.get("text")) if kind == "text" else ""

    def _extend(self, index: int, delta: Block) -> str:
        block = self._blocks.get(index)
        if block is None:
            return ""
        match delta.get("type"):
            case "text_delta":
                return self._grown(delta.get("text"))
            case "thinking_delta":
                self.thought = self._grown(delta.get("thinking"))
                block["thinking"] = block.get("thinking", "") + self.thought
            case "signature_delta":
                block["signature"] = block.get("signature", "") + self._grown(delta.get("signature"))
            case "input_json_delta":
                block["json"] = block.get("json", "") + self._grown(delta.get("partial_json"))
        return ""

    def _usage(self) -> Usage:
        """Return usage in which, as everywhere else, the prompt's tokens include the cached ones."""
        cached = count(self._prompt.get("cache_read_input_tokens"))
        written = count(self._prompt.get("cache_creation_input_tokens"))
        prompt = count(self._prompt.get("input_tokens")) + cached + written
        return Usage(prompt_tokens=prompt, completion_tokens=self._output_tokens, cached_tokens=cached)

    def _grown(self, value: object) -> str:
        """Return the text of an event, counted."""
        text = storable(str(value or ""))
        self.size += len(text)
        if self.size > ANSWER_MAX_BYTES:
            raise malformed("the answer has no end: it was stopped at 4 MiB")
        return text


def _tool_call(block: Block) -> Block:
    arguments = block["json"] or json.dumps(block.get("input") or {}, ensure_ascii=False)
    function = {"name": storable(str(block.get("name") or "")), "arguments": storable(arguments)}
    return {"id": storable(str(block.get("id") or "")), "type": "function", "function": function}


def _index(event: Block) -> int:
    index = event.get("index")
    if not isinstance(index, int):
        raise malformed("the model endpoint sent an event of an unknown shape")
    return index
