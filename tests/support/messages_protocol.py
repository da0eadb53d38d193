"""Anthropic Messages as its documentation describes it: streamed replies, and the checks of a request."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from tests.support.model_server import Reply, stream

SIGNED = "signature of "


def sent(name: str, **fields: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()


def started(prompt: int = 10, cached: int = 0, written: int = 0) -> bytes:
    usage = {
        "input_tokens": prompt,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
        "output_tokens": 1,
    }
    return sent("message_start", message={"id": "msg_1", "role": "assistant", "model": "claude-x-1", "usage": usage})


def block(index: int, kind: Mapping[str, Any], *deltas: Mapping[str, Any]) -> list[bytes]:
    pieces = [sent("content_block_delta", index=index, delta=delta) for delta in deltas]
    return [
        sent("content_block_start", index=index, content_block=kind),
        *pieces,
        sent("content_block_stop", index=index),
    ]


def halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def message(
    text: str = "",
    *,
    thinking: str = "",
    calls: Sequence[tuple[str, str, Mapping[str, Any]]] = (),
    stop: str = "",
    **usage: int,
) -> Reply:
    """A streamed message: thinking with its signature, text, and calls (id, name, input)."""
    parts = [started(**usage), sent("ping")]
    number = 0
    if thinking:
        deltas = [{"type": "thinking_delta", "thinking": half} for half in halves(thinking)]
        signature = {"type": "signature_delta", "signature": SIGNED + thinking}
        parts += block(number, {"type": "thinking", "thinking": "", "signature": ""}, *deltas, signature)
        number += 1
    if text:
        parts += block(
            number,
            {"type": "text", "text": ""},
            *({"type": "text_delta", "text": half} for half in halves(text)),
        )
        number += 1
    for id_, name, arguments in calls:
        deltas = [{"type": "input_json_delta", "partial_json": half} for half in halves(json.dumps(arguments))]
        parts += block(number, {"type": "tool_use", "id": id_, "name": name, "input": {}}, *deltas)
        number += 1
    stop = stop or ("tool_use" if calls else "end_turn")
    parts.append(
        sent("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage={"output_tokens": 7})
    )
    return stream(*parts, sent("message_stop"))


def refusal(status: int, kind: str, text: str = "no", **headers: str) -> Reply:
    """An error as Anthropic shapes it."""
    body = json.dumps({"type": "error", "error": {"type": kind, "message": text}}).encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, headers={"Content-Type": "application/json", **names}, parts=(body,))


def complaint(body: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """What the API would refuse a request for; empty if nothing."""
    if "x-api-key" not in {name.lower() for name in headers} or headers.get("anthropic-version") != "2023-06-01":
        return "headers"
    if not isinstance(body.get("max_tokens"), int):
        return "max_tokens: Field required"
    messages = body["messages"]
    roles = [each["role"] for each in messages]
    if roles[0] != "user" or any(one == other for one, other in pairwise(roles)):
        return "messages: roles must alternate and begin with user"
    if sum("cache_control" in json.dumps(part) for part in _cacheable(body)) > 4:
        return "a maximum of 4 blocks with cache_control"
    return _calls_complaint(messages) or _thinking_complaint(body, messages)


def _cacheable(body: Mapping[str, Any]) -> list[Any]:
    blocks = [part for each in body["messages"] for part in each["content"]]
    return [*blocks, *body.get("system", ()), *body.get("tools", ())]


def _calls_complaint(messages: Sequence[Mapping[str, Any]]) -> str:
    pending: set[str] = set()
    for each in messages:
        blocks = each["content"]
        if any(part["type"] == "text" and not part["text"].strip() for part in blocks):
            return "text content blocks must be non-empty"
        if each["role"] == "assistant":
            pending = {part["id"] for part in blocks if part["type"] == "tool_use"}
            continue
        results = {part["tool_use_id"] for part in blocks if part["type"] == "tool_result"}
        if results != pending:
            return "tool_use ids were found without tool_result blocks"
        pending = set()
    return ""


def _thinking_complaint(body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> str:
    for each in messages:
        for part in each["content"]:
            if part["type"] == "thinking" and part["signature"] != SIGNED + part["thinking"]:
                return "Invalid signature in thinking block"
    thinking = body.get("thinking", {})
    if thinking.get("type") != "enabled":
        return ""
    if not 1024 <= thinking["budget_tokens"] < body["max_tokens"]:
        return "budget_tokens must be at least 1024 and less than max_tokens"
    if "temperature" in body:
        return "temperature may only be set to 1 when thinking is enabled"
    in_loop = any(part["type"] == "tool_result" for part in messages[-1]["content"])
    if in_loop and messages[-2]["content"][0]["type"] not in ("thinking", "redacted_thinking"):
        return "Expected `thinking` or `redacted_thinking`, but found `tool_use`"
    return ""
