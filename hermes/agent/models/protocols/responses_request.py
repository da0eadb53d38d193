"""Request of the OpenAI Responses API, converted from chat messages. Nothing is stored at the provider.

Reasoning items come back encrypted and are sent again with the messages that they belong to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hermes.agent.chat_message import encode, text_of
from hermes.domain.provider import Provider
from hermes.domain.turn.reasoning import KEY, read_reasoning
from hermes.ports.agent import ModelRequest

_REASONS = re.compile(r"(.*/)?(o\d|gpt-[5-9])")  # models that reason; others refuse encrypted reasoning

Item = dict[str, Any]


def responses_body(request: ModelRequest, model: str, provider: Provider) -> bytes:
    messages = (json.loads(message) for message in request.messages)
    options = json.loads(request.options or b"{}")
    fields: Item = {
        "model": model,
        "input": [item for message in messages for item in _items(message, provider.name, model)],
        "store": False,
        "stream": True,
        **_sampling(options),
    }
    if request.tools:
        fields["tools"] = [_tool(tool) for tool in json.loads(request.tools)]
    if request.reasoning:
        effort = {"effort": provider.effort_level(request.reasoning)}
        fields["reasoning"] = effort if request.reasoning == "none" else {**effort, "summary": "auto"}
    if _REASONS.match(model) or provider.facts(model).reasoning:
        fields["include"] = ["reasoning.encrypted_content"]
    return encode(fields)


def _items(message: Item, provider: str, model: str) -> Iterator[Item]:
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        output = text_of(content)
        yield {"type": "function_call_output", "call_id": message.get("tool_call_id") or "", "output": output}
    elif role == "assistant":
        reasoning = read_reasoning(message.get(KEY))
        if (reasoning.provider, reasoning.model) == (provider, model):
            yield from map(dict, reasoning.items)
        if text := text_of(content):
            yield {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        yield from map(_call, message.get("tool_calls") or ())
    else:
        yield {"type": "message", "role": role or "user", "content": list(_parts(content))}


def _call(call: Item) -> Item:
    function = call.get("function") or {}
    return {
        "type": "function_call",
        "call_id": call.get("id") or "",
        "name": function.get("name") or "",
        "arguments": function.get("arguments") or "{}",
    }


def _parts(content: object) -> Iterator[Item]:
    for part in content if isinstance(content, list) else [text_of(content)]:
        image = part.get("image_url") if isinstance(part, dict) and part.get("type") == "image_url" else None
        if isinstance(image, dict):
            yield {
                "type": "input_image",
                "image_url": image.get("url") or "",
                "detail": image.get("detail") or "auto",
            }
        else:
            yield {"type": "input_text", "text": text_of([part])}


def _tool(tool: Item) -> Item:
    function = tool.get("function") or {}
    named = {name: function[name] for name in ("name", "description", "parameters") if name in function}
    return {"type": "function", **named, "strict": bool(function.get("strict"))}


def _sampling(options: Mapping[str, Any]) -> Item:
    """Return the options that the API knows; it has no seed, penalties or stop sequences."""
    fields = {name: options[name] for name in ("temperature", "top_p", "user") if name in options}
    if limit := options.get("max_completion_tokens") or options.get("max_tokens"):
        fields["max_output_tokens"] = limit
    form = options.get("response_format")
    if isinstance(form, dict):
        schema = form.get("json_schema")
        fields["text"] = {"format": {"type": form["type"], **(schema if isinstance(schema, dict) else {})}}
    return fields
