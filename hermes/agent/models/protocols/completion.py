"""Streamed chat completion: the request as bytes, and the answer assembled from its chunks.

A request joins messages that are already encoded, without parsing them. The answer is validated: an invalid chunk,
an endless answer or a stream without a finish reason is a `malformed_reply`. The result can always be stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from hermes.agent.models.failure import from_error_object, malformed, model_error
from hermes.agent.models.protocols.wire import StreamedAnswer
from hermes.domain.errors import ModelError
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.reasoning import MARK, without_reasoning
from hermes.domain.turn.turn_failure import FailureKind
from hermes.domain.turn.usage import Usage
from hermes.ports.agent import ModelDone, ModelRequest

ANSWER_MAX_BYTES = 4 * 1024 * 1024
CALLS_MAX = 128  # in one answer
_COUNT_MAX = 2**53
_BROKEN_OFF = frozenset({"error", "abort", "aborted", "cancelled"})  # finish reasons of incomplete answers
_STREAMED = b'"stream":true,"stream_options":{"include_usage":true}}'


def request_body(
    request: ModelRequest,
    *settings: bytes,
    replayed: Callable[[EncodedMessage], EncodedMessage] = without_reasoning,
) -> bytes:
    """Return the request as JSON. Our settings come after the request's options and override them.

    `replayed` returns a message with stored reasoning as the endpoint wants it.
    """
    options = without_ours(request.options).strip()[1:-1].strip()
    tools = b'"tools":' + request.tools if len(request.tools) > len(b"[]") else b""
    ends = [b"]", *filter(None, (tools, *settings, _STREAMED))]

    def joined(messages: Sequence[EncodedMessage]) -> bytes:
        parts: list[bytes] = list(messages) or [b""]
        parts[0] = b"{" + options + (b"," if options else b"") + b'"messages":[' + parts[0]
        parts[-1] += ends[0]
        return b",".join((*parts, *ends[1:]))  # of megabytes, one copy is made

    body = joined(request.messages)
    if MARK not in body:  # one search in the whole is several times faster than one for each message
        return body
    return joined([replayed(message) if message.find(MARK) >= 0 else message for message in request.messages])


def without_ours(options: bytes) -> bytes:
    """Return the options without the key `hermes`, which is not for the model."""
    if b'"hermes":' not in options:
        return options
    fields = json.loads(options)
    fields.pop("hermes", None)
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


class StreamedCompletion(StreamedAnswer):
    def __init__(self, *, model: str, secret: str = "") -> None:
        self.over = False
        self.thought = ""
        self.size = 0
        self._model = model
        self._secret = secret
        self._finish_reason = ""
        self._usage = Usage()
        self._calls: list[dict[str, str]] = []
        self._open: dict[int, dict[str, str]] = {}  # by index: the call that the next piece belongs to
        self._details: list[dict[str, Any]] = []  # reasoning to send back, merged from pieces
        self._half = ""  # first half of a surrogate pair

    def add(self, data: bytes) -> str:
        self.thought = ""
        if data == b"[DONE]":
            self.over = True
            return ""
        chunk = decode(data)
        if chunk.get("error"):
            raise ModelError(from_error_object(chunk["error"], secret=self._secret))
        self._note(chunk)
        choice = _first_choice(chunk)
        if choice.get("finish_reason"):
            self._finish_reason = str(choice["finish_reason"])
            self.over = True
        delta = mapping(choice.get("delta"))
        if len(delta) == 1 and "content" in delta:  # the usual case
            return self._text(delta["content"])
        if delta.get("tool_calls"):
            self._grow(len(data))
            self._add_calls(delta["tool_calls"])
        if delta.get("reasoning_content") or delta.get("reasoning") or delta.get("reasoning_details"):
            self._add_reasoning(delta)
        return self._text(delta.get("content"))

    def done(self) -> ModelDone:
        """Return the end of the completion after the stream. Raises ModelError if it is incomplete."""
        if not self._finish_reason:
            raise malformed("the answer is incomplete: it has no finish reason")
        if self._finish_reason == "content_filter":
            raise model_error(FailureKind.POLICY, "the provider's content filter stopped the answer")
        if self._finish_reason in _BROKEN_OFF:
            raise malformed(f"the model endpoint aborted the answer (finish reason {self._finish_reason!r})")
        if self._finish_reason == "tool_calls" and not self._calls:
            raise malformed("the answer announced tool calls and had none")
        return ModelDone(
            finish_reason=self._finish_reason,
            model=self._model,
            usage=self._usage,
            tool_calls=tuple(map(_tool_call, self._calls)),
            reasoning=tuple(self._details),
        )

    def _note(self, chunk: dict[str, Any]) -> None:
        if (model := chunk.get("model")) and model != self._model and isinstance(model, str):
            self._model = storable(model)
        if chunk.get("usage"):
            self._usage = _usage(mapping(chunk["usage"]))

    def _text(self, content: object) -> str:
        if content is None:
            return ""
        if not isinstance(content, str):
            raise malformed("the model endpoint sent content that is not text")
        self._grow(len(content))
        if content.isascii() and not self._half:
            return content
        text, self._half = self._half + content, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return storable(text)

    def _add_reasoning(self, delta: dict[str, Any]) -> None:
        text = delta.get("reasoning_content") or delta.get("reasoning") or ""
        if not isinstance(text, str):
            raise malformed("the model endpoint sent reasoning that is not text")
        self.thought = storable(text)
        self._grow(len(text))
        details = delta.get("reasoning_details")
        for detail in details if isinstance(details, list) else ():
            self._grow(len(text))
            _merge_detail(self._details, mapping(detail))

    def _add_calls(self, calls: object) -> None:
        for position, part in enumerate(calls if isinstance(calls, list) else [calls]):
            piece = mapping(part)
            function = mapping(piece.get("function"))
            index = piece.get("index")
            if not isinstance(index, int | None):
                raise malformed("the model endpoint sent a tool call that cannot be read")
            call = self._call(position if index is None else index, str(piece.get("id") or ""))
            call["name"] += str(function.get("name") or "")
            call["arguments"] += _arguments(function.get("arguments"))

    def _call(self, index: int, name: str) -> dict[str, str]:
        """Return the call that a piece belongs to. A new id starts a new call, even with the same index."""
        call = self._open.get(index)
        if call is None or (name and call["id"] and name != call["id"]):
            call = self._open[index] = {"id": "", "name": "", "arguments": ""}
            self._calls.append(call)
            if len(self._calls) > CALLS_MAX:
                raise malformed(f"the answer has more than {CALLS_MAX} tool calls")
        call["id"] = call["id"] or name
        return call

    def _grow(self, size: int) -> None:
        self.size += size
        if self.size > ANSWER_MAX_BYTES:
            raise malformed("the answer has no end: it was stopped at 4 MiB")


def decode(data: bytes) -> dict[str, Any]:
    try:
        # Decoded here, because json would let broken UTF-8 through as lone surrogates.
        return mapping(json.loads(data.decode("utf-8")))
    except (ValueError, RecursionError) as error:
        raise malformed("the model endpoint sent a chunk that is not JSON") from error


def _first_choice(chunk: dict[str, Any]) -> dict[str, Any]:
    choices = chunk.get("choices")
    if type(choices) is list and len(choices) == 1 and type(choices[0]) is dict and choices[0].get("index", 0) == 0:
        return choices[0]  # the usual case
    if choices is not None and not isinstance(choices, list):
        raise malformed("the model endpoint sent a chunk of an unknown shape")
    return next((choice for choice in map(mapping, choices or ()) if choice.get("index", 0) == 0), {})


def mapping(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise malformed("the model endpoint sent a chunk of an unknown shape")
    return value


def _arguments(value: object) -> str:
    """Return the arguments as text. Some endpoints send an object instead."""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value or "")


def _usage(usage: dict[str, Any]) -> Usage:
    """Read usage. Some endpoints name cached tokens differently."""
    details = mapping(usage.get("prompt_tokens_details")).get("cached_tokens")
    cached = details or usage.get("prompt_cache_hit_tokens") or usage.get("cached_tokens")
    return Usage(
        prompt_tokens=count(usage.get("prompt_tokens")),
        completion_tokens=count(usage.get("completion_tokens")),
        cached_tokens=count(cached),
        cost_usd=_amount(usage.get("cost")),
    )


def _merge_detail(details: list[dict[str, Any]], piece: dict[str, Any]) -> None:
    """Add a piece of reasoning. Pieces with the same index and type are parts of one item."""
    last = details[-1] if details else {}
    if last and (last.get("index"), last.get("type")) == (piece.get("index"), piece.get("type")):
        for name, value in piece.items():
            grows = name in ("text", "summary", "data") and isinstance(value, str) and isinstance(last.get(name), str)
            last[name] = last[name] + value if grows else value if value is not None else last.get(name)
    else:
        details.append(dict(piece))


def count(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < _COUNT_MAX else 0


def _amount(value: object) -> float:
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e9 else 0.0


def _tool_call(call: dict[str, str]) -> dict[str, Any]:
    function = {"name": storable(call["name"]), "arguments": storable(call["arguments"])}
    return {"id": storable(call["id"]), "type": "function", "function": function}


def storable(text: str) -> str:
    """Return the text with surrogate pairs joined and lone surrogates replaced by U+FFFD."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
