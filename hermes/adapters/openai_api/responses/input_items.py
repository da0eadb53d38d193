"""Input items in OpenAI's format, converted to chat messages. Pure.

Clients send back what they received: calls of server tools, references to stored items, reasoning, refusals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from hermes.adapters.http.field import refuse

Messages: TypeAlias = list[dict[str, Any]]

_TEXT_PARTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}  # and their fields
_PASSED_OVER = ("reasoning", "mcp_list_tools")  # useless to another model
_NO_RESULT = "The call has no recorded result."


def as_messages(value: Any, stored: Mapping[str, Mapping[str, Any]]) -> Messages:
    """Convert the items. `stored` has the referenced items by id."""
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if not isinstance(value, list):
        refuse("input", "input must be a string or a list of items.")
    messages: Messages = []
    for index, item in enumerate(value):
        param = f"input[{index}]"
        if not isinstance(item, dict):
            refuse(param, f"{param} must be an object.")
        if item.get("type") == "item_reference":
            item = stored.get(str(item.get("id")), _SKIPPED)  # noqa: PLW2901
        _add(messages, item, param)
    return messages


def references_in(value: Any) -> list[str]:
    """Return the ids of referenced items."""
    items = value if isinstance(value, list) else []
    return [
        item["id"]
        for item in items
        if isinstance(item, dict) and item.get("type") == "item_reference" and isinstance(item.get("id"), str)
    ]


def _add(messages: Messages, item: Mapping[str, Any], param: str) -> None:
    kind = item.get("type", "message")
    if kind in _PASSED_OVER:
        return
    add = _ADD.get(kind)
    if add is None:
        known = ", ".join((*_ADD, "item_reference", *_PASSED_OVER))
        refuse(f"{param}.type", f"{param}.type is {str(kind)[:40]!r}; it must be one of {known}.")
    add(messages, item, param)


def _add_message(messages: Messages, item: Mapping[str, Any], _param: str) -> None:
    content = item.get("content")
    if content is None and item.get("role") == "assistant":
        content = ""
    messages.append({"role": item.get("role"), "content": _parts(content)})


def _add_call(messages: Messages, item: Mapping[str, Any], _param: str) -> None:
    """Add a call. Calls of one model message are merged into one message."""
    call = _call(item.get("call_id"), item)
    if messages and messages[-1]["role"] == "assistant":
        messages[-1].setdefault("tool_calls", []).append(call)
    else:
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})


def _add_output(messages: Messages, item: Mapping[str, Any], _param: str) -> None:
    messages.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": _parts(item.get("output"))})


def _add_server_call(messages: Messages, item: Mapping[str, Any], _param: str) -> None:
    """Add a call that ran on the server, with its result. Some endpoints accept only short call ids."""
    name = f"call_{len(messages)}"
    messages.append({"role": "assistant", "content": None, "tool_calls": [_call(name, item)]})
    messages.append({"role": "tool", "tool_call_id": name, "content": _result(item)})


_SKIPPED: Mapping[str, Any] = {"type": "reasoning"}
_ADD: Mapping[str, Callable[[Messages, Mapping[str, Any], str], None]] = {
    "message": _add_message,
    "function_call": _add_call,
    "function_call_output": _add_output,
    "mcp_call": _add_server_call,
}


def _call(name: Any, item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": name,
        "type": "function",
        "function": {"name": item.get("name"), "arguments": item.get("arguments")},
    }


def _result(item: Mapping[str, Any]) -> str:
    if isinstance(output := item.get("output"), str):
        return output
    error = item.get("error")
    if isinstance(error, dict):
        error = error.get("message") or _texts(error.get("content"))
    return error if isinstance(error, str) and error else _NO_RESULT


def _texts(content: Any) -> str:
    parts: Sequence[Any] = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def _parts(content: Any) -> Any:
    """Rename text parts to their chat name; the chat parser refuses other parts."""
    if not isinstance(content, list):
        return content
    return [_part(part) for part in content]


def _part(part: Any) -> Any:
    field = _TEXT_PARTS.get(str(part.get("type"))) if isinstance(part, dict) else None
    return part if field is None else {"type": "text", "text": part.get(field)}
