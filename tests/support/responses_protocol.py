"""OpenAI Responses as its documentation describes it: streamed replies, and the checks of a request."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.model_server import Reply, stream

SEALED = "sealed "


def sent(name: str, **fields: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()


def response(
    text: str = "",
    *,
    thought: str = "",
    calls: Sequence[tuple[str, str, Mapping[str, Any]]] = (),
    cut: str = "",
    prompt: int = 10,
    cached: int = 0,
) -> Reply:
    """A streamed response: a reasoning item with its summary, a message, and calls (id, name, arguments)."""
    parts = [sent("response.created", response={"id": "resp_1", "status": "in_progress"})]
    if thought:
        item = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": thought}]}
        parts.append(sent("response.reasoning_summary_text.delta", item_id="rs_1", delta=thought))
        parts.append(sent("response.output_item.done", item={**item, "encrypted_content": SEALED + thought}))
    halves = (text[: len(text) // 2], text[len(text) // 2 :]) if text else ()
    parts += [sent("response.output_text.delta", item_id="msg_1", delta=half) for half in halves]
    for id_, name, arguments in calls:
        item = {"type": "function_call", "id": f"fc_{id_}", "call_id": id_, "name": name, "status": "completed"}
        parts.append(sent("response.function_call_arguments.delta", delta=json.dumps(arguments)))
        parts.append(sent("response.output_item.done", item={**item, "arguments": json.dumps(arguments)}))
    usage = {"input_tokens": prompt, "output_tokens": 7, "input_tokens_details": {"cached_tokens": cached}}
    end: dict[str, Any] = {"model": "gpt-x-1", "usage": usage, "output": []}
    if cut:
        end["incomplete_details"] = {"reason": cut}
    return stream(*parts, sent("response.incomplete" if cut else "response.completed", response=end))


def failed(code: str, text: str = "no") -> Reply:
    return stream(sent("response.failed", response={"error": {"code": code, "message": text}}))


def complaint(body: Mapping[str, Any]) -> str:
    """What the API would refuse a request for; empty if nothing."""
    if body.get("store") is not False or not body.get("stream"):
        return "store"
    known = {"message", "reasoning", "function_call", "function_call_output"}
    if any(item.get("type") not in known for item in body["input"]):
        return "input item type"
    asked = [item["call_id"] for item in body["input"] if item["type"] == "function_call"]
    results = [item["call_id"] for item in body["input"] if item["type"] == "function_call_output"]
    if sorted(asked) != sorted(results):
        return "No tool output found for function call"
    for item in body["input"]:
        if item["type"] == "reasoning" and not item.get("encrypted_content", "").startswith(SEALED):
            return "reasoning item was not found"
        if item["type"] == "message" and any(
            part["type"] not in ("input_text", "input_image", "output_text") for part in item["content"]
        ):
            return "content part type"
    return "" if all("name" in tool for tool in body.get("tools", ())) else "tools: name"
