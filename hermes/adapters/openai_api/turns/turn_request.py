"""Body of POST /v1/responses and POST /v1/runs: `input` in OpenAI's formats, converted to chat messages.

Values that a client gets back later (metadata, the previous response) are stored with the turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.adapters.http.field import boolean, encode, filled_text, given, metadata, refuse, text
from hermes.adapters.http.parameter import session_id
from hermes.adapters.openai_api.chat_request import OPTIONS, read_messages, small
from hermes.domain.ids import SessionId
from hermes.domain.message import EncodedMessage
from hermes.domain.values import dataclass

INSTRUCTIONS = "instructions"  # key of the instructions among the messages
_TEXT_PARTS = ("input_text", "output_text", "text")
_OPTION_NAMES = {"temperature": "temperature", "top_p": "top_p", "user": "user"} | {
    "max_output_tokens": "max_completion_tokens"
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    model: str
    messages: tuple[EncodedMessage, ...]
    options: bytes
    user: str
    stream: bool
    store: bool
    previous: str  # id of a response; may be empty
    session: SessionId | None
    notice: str


def parse_turn_request(body: Any, default_model: str) -> TurnRequest:
    body = given(body)
    options = {
        chat_name: OPTIONS[chat_name](body[name], name) for name, chat_name in _OPTION_NAMES.items() if name in body
    }
    if (wanted := _response_format(body.get("text"))) is not None:
        options["response_format"] = wanted
    model = filled_text(body.get("model", default_model), "model")
    name = "previous_response_id"
    previous = filled_text(body[name], name) if name in body else ""
    store = boolean(body.get("store", True), "store")
    kept = {
        "model": model,
        "previous_response_id": previous or None,
        "metadata": metadata(body.get("metadata", {}), "metadata"),
        "store": store,
    }
    return TurnRequest(
        model=model,
        messages=_encoded(body),
        options=small(encode({**options, "hermes": kept}, "metadata")),
        user=options.get("user", ""),
        stream=boolean(body.get("stream", False), "stream"),
        store=store,
        previous=previous,
        session=session_id(text(body["session_id"], "session_id"), "session_id") if "session_id" in body else None,
        notice="The request's tools were ignored: tools run on the server." if body.get("tools") else "",
    )


def _encoded(body: Mapping[str, Any]) -> tuple[EncodedMessage, ...]:
    messages = list(read_messages(_as_chat(body.get("input")), "input"))
    if "instructions" in body:
        said = filled_text(body["instructions"], "instructions")
        messages.insert(0, {"role": "system", "content": said, "name": INSTRUCTIONS})
    return tuple(EncodedMessage(encode(message, "input")) for message in messages)


def _response_format(wish: Any) -> Mapping[str, Any] | None:
    wanted = wish.get("format") if isinstance(wish, dict) else None
    if not isinstance(wanted, dict) or wanted.get("type") == "text":
        return None
    if wanted.get("type") == "json_schema":
        return {"type": "json_schema", "json_schema": {k: v for k, v in wanted.items() if k != "type"}}
    checked: Mapping[str, Any] = OPTIONS["response_format"](wanted, "text.format")
    return checked


# ---------------------------------------------------------------- input


def _as_chat(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if not isinstance(value, list):
        refuse("input", "input must be a string or a list of items.")
    messages: list[dict[str, Any]] = []
    for index, item in enumerate(value):
        _add(messages, item, f"input[{index}]")
    return messages


def _add(messages: list[dict[str, Any]], item: Any, param: str) -> None:
    if not isinstance(item, dict):
        refuse(param, f"{param} must be an object.")
    match item.get("type", "message"):
        case "message":
            messages.append({"role": item.get("role"), "content": _parts(item.get("content"))})
        case "function_call":
            _add_call(messages, item)
        case "function_call_output":
            messages.append(
                {"role": "tool", "tool_call_id": item.get("call_id"), "content": _parts(item.get("output"))}
            )
        case "reasoning":
            pass  # a model's own notes are useless to another model
        case kind:
            refuse(f"{param}.type", f"{param} is an item of type {str(kind)[:40]!r}, which is not supported.")


def _add_call(messages: list[dict[str, Any]], item: Mapping[str, Any]) -> None:
    """Add a call. Calls of one model message are merged into one message."""
    function = {"name": item.get("name"), "arguments": item.get("arguments")}
    call = {"id": item.get("call_id"), "type": "function", "function": function}
    if messages and messages[-1]["role"] == "assistant":
        messages[-1].setdefault("tool_calls", []).append(call)
    else:
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})


def _parts(content: Any) -> Any:
    """Rename text parts to their chat name; the chat parser refuses other parts."""
    if not isinstance(content, list):
        return content
    return [
        {**part, "type": "text"} if isinstance(part, dict) and part.get("type") in _TEXT_PARTS else part
        for part in content
    ]
