"""Body of POST /v1/chat/completions, checked and normalised.

Every message has known keys and its text as one string. Fields that OpenAI clients send and Hermes does not use are
ignored; where that matters, the answer has a notice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hermes.adapters.http.field import boolean, encode, filled_text, given, number, refuse, text, whole
from hermes.adapters.openai_api.turns.conversation_input import ConversationInput, split
from hermes.adapters.openai_api.turns.tool_wish import read_tools
from hermes.domain.media.reference import content_of, named_by
from hermes.domain.values import dataclass

MAX_MESSAGES = 2_000
MAXOPTIONS_BYTES = 256 << 10
ROLES = ("system", "developer", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    model: str
    given: ConversationInput
    options: bytes  # JSON object for the model
    user: str
    stream: bool
    include_usage: bool
    notice: str


def parse_chat_request(body: Any) -> ChatRequest:
    body = given(body)
    _choices(body.get("n", 1), "n")
    model = filled_text(body.get("model"), "model")
    options = {name: check(body[name], name) for name, check in OPTIONS.items() if name in body}
    tools = read_tools(body, model)
    ours = {"hermes": tools.kept} if tools.kept else {}
    return ChatRequest(
        model=model,
        given=split(read_messages(body.get("messages"), "messages"), "messages"),
        options=small(encode({**options, **tools.options, **ours}, "options")),
        user=options.get("user", ""),
        stream=boolean(body.get("stream", False), "stream"),
        include_usage=_include_usage(body.get("stream_options", {})),
        notice=tools.notice,
    )


# ---------------------------------------------------------------- messages


def read_messages(value: Any, name: str) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list) or not value:
        refuse(name, f"{name} must be a list of at least one message.")
    if len(value) > MAX_MESSAGES:
        refuse(name, f"{name} has {len(value):,} messages; the maximum is {MAX_MESSAGES:,}.")
    messages = tuple(_message(message, f"{name}[{index}]") for index, message in enumerate(value))
    last = f"{name}[{len(messages) - 1}]"
    if messages[-1]["role"] not in ("user", "tool"):
        refuse(f"{last}.role", "The last message must have the role user or tool.")
    if messages[-1]["role"] == "user" and not messages[-1]["content"]:
        refuse(f"{last}.content", "The last message is empty.")
    return messages


def _message(value: Any, param: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        refuse(param, f"{param} must be an object.")
    role = value.get("role")
    if role not in ROLES:
        refuse(f"{param}.role", f"{param}.role must be one of {', '.join(ROLES)}.")
    message: dict[str, Any] = {"role": role}
    calls = value.get("tool_calls") if role == "assistant" else None
    if calls and value.get("content") is None:
        message["content"] = None
    else:
        message["content"] = _content(value.get("content"), f"{param}.content")
    if value.get("name") is not None:
        message["name"] = filled_text(value["name"], f"{param}.name")
    if calls:
        message["tool_calls"] = _tool_calls(calls, f"{param}.tool_calls")
    if role == "tool":
        message["tool_call_id"] = filled_text(value.get("tool_call_id"), f"{param}.tool_call_id")
    return message


def _content(value: Any, param: str) -> Any:
    """Return the text, or with stored pictures a list of parts."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        refuse(param, f"{param} must be a string or a list of parts.")
    pictures = [name for part in value if (name := named_by(part))]
    texts = (_text_part(part, f"{param}[{n}]") for n, part in enumerate(value) if not named_by(part))
    return content_of("\n".join(texts), pictures)


def _text_part(part: Any, param: str) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind != "text":
        named = f" of type {kind[:40]!r}" if isinstance(kind, str) else ""
        refuse(f"{param}.type", f"{param} is a part{named}; only text is supported.")
    return text(part.get("text"), f"{param}.text")


def _tool_calls(value: Any, param: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, list):
        refuse(param, f"{param} must be a list of tool calls.")
    return [_tool_call(call, f"{param}[{index}]") for index, call in enumerate(value)]


def _tool_call(value: Any, param: str) -> Mapping[str, Any]:
    function = value.get("function") if isinstance(value, dict) else None
    if not isinstance(function, dict):
        refuse(param, f"{param} must be a function call.")
    return {
        "id": filled_text(value.get("id"), f"{param}.id"),
        "type": "function",
        "function": {
            "name": filled_text(function.get("name"), f"{param}.function.name"),
            "arguments": text(function.get("arguments"), f"{param}.function.arguments"),
        },
    }


# ---------------------------------------------------------------- values


def _include_usage(value: Any) -> bool:
    if not isinstance(value, dict):
        refuse("stream_options", "stream_options must be an object.")
    return boolean(value.get("include_usage") or False, "stream_options.include_usage")


def _choices(value: Any, param: str) -> None:
    if isinstance(value, bool) or value != 1:
        refuse(param, "n must be 1: a conversation has one answer.")


def _stop(value: Any, param: str) -> list[str]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not 1 <= len(texts) <= 4 or not all(isinstance(text, str) for text in texts):
        refuse(param, f"{param} must be a string or a list of 1 to 4 strings.")
    return texts


def _response_format(value: Any, param: str) -> Mapping[str, Any]:
    kinds = ("text", "json_object", "json_schema")
    if not isinstance(value, dict) or value.get("type") not in kinds:
        refuse(param, f"{param} must be an object whose type is one of {', '.join(kinds)}.")
    return value


OPTIONS: Mapping[str, Callable[[Any, str], Any]] = {
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    "max_tokens": whole(1, 2**31 - 1),
    "max_completion_tokens": whole(1, 2**31 - 1),
    "presence_penalty": number(-2, 2),
    "frequency_penalty": number(-2, 2),
    "seed": whole(-(2**63), 2**63 - 1),
    "stop": _stop,
    "response_format": _response_format,
    "user": text,
}


def small(options: bytes, *, more: int = 0) -> bytes:
    """Check the size of a turn's options. They are stored with the session while the turn is open."""
    if len(options) > MAXOPTIONS_BYTES + more:
        what = "response_format, stop and user"
        refuse("response_format", f"The options of a turn ({what}) must have at most {MAXOPTIONS_BYTES} bytes.")
    return options
