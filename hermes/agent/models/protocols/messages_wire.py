"""Anthropic Messages: the request converted from chat messages, with breakpoints for prompt caching.

Tools and system prompt come first in the cached prefix, so one breakpoint covers both. Two more mark the ends of the
last two user messages. Thinking blocks of the same model are sent back unchanged, with their signatures.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hermes.agent.chat_message import INSTRUCTIVE, encode, text_of
from hermes.agent.models.protocols.messages_answer import StreamedMessage
from hermes.agent.models.protocols.wire import StreamedAnswer, Wire
from hermes.domain.provider import Provider
from hermes.domain.turn.reasoning import KEY, Reasoning, read_reasoning
from hermes.ports.agent import ModelRequest

VERSION = "2023-06-01"
DEFAULT_MAX_TOKENS = 8192
BREAKPOINTS = 2  # on user messages; four are allowed in all
_BUDGETS = {"minimal": 1024, "low": 4096, "medium": 8192, "high": 16_384, "xhigh": 32_768}  # thinking tokens
_MIN_BUDGET = 1024
_ANSWER_TOKENS = 4096  # left for the answer beside the thinking
_BUDGETED = re.compile(r"claude-(3-7|(opus|sonnet|haiku)-4(-[015])?(-20\d{6})?$)")  # later ones take an effort
_ADAPTIVE = {"minimal": "low", "xhigh": "high"}
_CACHED = {"cache_control": {"type": "ephemeral"}}
_DATA_URL = re.compile(r"data:([\w/+.-]+);base64,(.*)", re.DOTALL)
_CALL_ID = re.compile(r"[^A-Za-z0-9_-]")
_CONTINUED = {"type": "text", "text": "(continued)"}

Block = dict[str, Any]


class MessagesWire(Wire):
    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def path(self, _model: str) -> str:
        return "/messages"

    @property
    def headers(self) -> Mapping[str, str]:
        return {"anthropic-version": VERSION}

    def body(self, request: ModelRequest, model: str) -> bytes:
        messages = [json.loads(message) for message in request.messages]
        system, turns = converted(messages, lambda reasoning: self._is_own(reasoning, model))
        options = json.loads(request.options or b"{}")
        max_tokens = options.get("max_completion_tokens") or options.get("max_tokens") or self._max_tokens(model)
        thinking = {} if _lacks_thinking(turns) else thinking_fields(model, request.reasoning, max_tokens)
        fields: dict[str, Any] = {"model": model, **({"tools": _tools(request.tools)} if request.tools else {})}
        if system:
            fields["system"] = [*system[:-1], {**system[-1], **_CACHED}]
        fields |= {"messages": _with_breakpoints(turns), **_sampling(options, thinking=bool(thinking)), **thinking}
        return encode({**fields, "max_tokens": max_tokens, "stream": True})

    def answer(self, model: str, *, secret: str) -> StreamedAnswer:
        return StreamedMessage(model=model, secret=secret)

    def _is_own(self, reasoning: Reasoning, model: str) -> bool:
        return reasoning.provider == self._provider.name and reasoning.model == model

    def _max_tokens(self, model: str) -> int:
        return self._provider.facts(model).max_output or DEFAULT_MAX_TOKENS


def thinking_fields(model: str, level: str, max_tokens: int) -> dict[str, Any]:
    """Return the fields for a reasoning effort: a budget for older models, an effort for later ones."""
    if level not in _BUDGETS:
        return {}
    if not _BUDGETED.match(model):
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": _ADAPTIVE.get(level, level)}}
    budget = min(_BUDGETS[level], max_tokens - min(_ANSWER_TOKENS, max_tokens // 2))
    return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget >= _MIN_BUDGET else {}


def converted(messages: Sequence[Block], own: Callable[[Reasoning], bool]) -> tuple[list[Block], list[Block]]:
    """Return the system blocks and the messages, with alternating roles. `own` tells which reasoning is sent back."""
    system: list[Block] = []
    turns: list[Block] = []
    for message in messages:
        if message.get("role") in INSTRUCTIVE and not turns:
            system += _text_block(text_of(message.get("content")))
            continue
        role = "assistant" if message.get("role") == "assistant" else "user"
        blocks = list(_assistant_blocks(message, own) if role == "assistant" else _user_blocks(message))
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    if not turns or turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [dict(_CONTINUED)]})
    return system, turns


def _assistant_blocks(message: Block, own: Callable[[Reasoning], bool]) -> Iterator[Block]:
    reasoning = read_reasoning(message.get(KEY))
    if own(reasoning):
        yield from map(dict, reasoning.items)
    yield from _text_block(text_of(message.get("content")))
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        yield {
            "type": "tool_use",
            "id": _call_id(call.get("id")),
            "name": function.get("name") or "",
            "input": _arguments(function.get("arguments")),
        }


def _user_blocks(message: Block) -> Iterator[Block]:
    content = message.get("content")
    if message.get("role") == "tool":
        result = list(_parts(content))
        yield {"type": "tool_result", "tool_use_id": _call_id(message.get("tool_call_id")), "content": result}
    else:
        yield from _parts(content)


def _parts(content: object) -> Iterator[Block]:
    if not isinstance(content, list):
        yield from _text_block(text_of(content))
        return
    for part in content:
        url = _image_url(part)
        if url:
            yield {"type": "image", "source": _source(url)}
        else:
            yield from _text_block(text_of([part]))


def _image_url(part: object) -> str:
    image = part.get("image_url") if isinstance(part, dict) and part.get("type") == "image_url" else None
    return str(image.get("url") or "") if isinstance(image, dict) else ""


def _source(url: str) -> Block:
    if found := _DATA_URL.fullmatch(url):
        return {"type": "base64", "media_type": found[1], "data": found[2]}
    return {"type": "url", "url": url}


def _text_block(text: str) -> list[Block]:
    return [{"type": "text", "text": text}] if text.strip() else []  # an empty block is refused


def _call_id(value: object) -> str:
    return _CALL_ID.sub("_", str(value or ""))[:64] or "call"


def _arguments(value: object) -> Block:
    try:
        arguments = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        arguments = None
    return arguments if isinstance(arguments, dict) else {}


def _tools(tools: bytes) -> list[Block]:
    functions = (tool.get("function") or {} for tool in json.loads(tools))
    return [
        {
            "name": function.get("name") or "",
            "description": function.get("description") or "",
            "input_schema": function.get("parameters") or {"type": "object", "properties": {}},
        }
        for function in functions
    ]


def _sampling(options: Mapping[str, Any], *, thinking: bool) -> Block:
    """Return the sampling options. Thinking allows neither temperature nor top_p."""
    fields: Block = {}
    if not thinking:
        fields |= {name: options[name] for name in ("top_p",) if name in options}
        if "temperature" in options:
            fields["temperature"] = min(options["temperature"], 1)
    if options.get("stop"):
        fields["stop_sequences"] = options["stop"]
    return fields


def _lacks_thinking(turns: Sequence[Block]) -> bool:
    """Return whether an open tool loop began without thinking blocks; the API then refuses thinking."""
    last = turns[-1]["content"] if turns[-1]["role"] == "user" else []
    if not any(block["type"] == "tool_result" for block in last) or len(turns) < 2:
        return False
    return turns[-2]["content"][0]["type"] not in ("thinking", "redacted_thinking")


def _with_breakpoints(turns: list[Block]) -> list[Block]:
    places = [place for place, turn in enumerate(turns) if turn["role"] == "user"][-BREAKPOINTS:]
    for place in places:
        content = turns[place]["content"]
        content[-1] = {**content[-1], **_CACHED}
    return turns
