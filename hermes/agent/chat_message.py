"""Lenient reader of one chat message: role, text, tool calls and estimated tokens.

Messages come from clients, models and older versions, so reading never raises. A message that cannot be parsed has
no role and counts as plain text. Messages are immutable; a change creates a new one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from hermes.domain.turn.message import EncodedMessage
from hermes.domain.values import dataclass

# Estimates that hold for most tokenizers when bytes are counted: a token is about four English letters, two Cyrillic
# letters or one Chinese character. JSON and code have fewer bytes per token.
BYTES_PER_TOKEN = 4
JSON_BYTES_PER_TOKEN = 3
MESSAGE_TOKENS = 4  # overhead of each message
CALL_TOKENS = 8  # overhead of each tool call
MEDIA_TOKENS = 1000  # of an image, audio or file, whatever its encoded size

_JSON_BEGINNINGS = ("{", "[{", '["', "[[")

INSTRUCTIVE = frozenset({"system", "developer"})
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))  # made once: `dumps` makes one each time


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedCall:
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """A message and its parsed fields."""

    encoded: EncodedMessage
    fields: Mapping[str, Any]  # empty if it is not a JSON object
    role: str
    text: str
    calls: tuple[ProposedCall, ...]
    answers: str  # id of the call whose result this is
    tokens: int


def read(message: EncodedMessage) -> ChatMessage:
    fields = _fields(message)
    text = text_of(fields.get("content")) if fields else message.decode(errors="replace")
    role = _text(fields.get("role"))
    calls = _calls(fields.get("tool_calls")) if role == "assistant" else ()
    return ChatMessage(
        encoded=message,
        fields=fields,
        role=role,
        text=text,
        calls=calls,
        answers=_text(fields.get("tool_call_id")),
        tokens=_tokens(fields, text, calls),
    )


def tokens_of(message: EncodedMessage) -> int:
    """Return an estimate, for use before the provider reports a count."""
    return read(message).tokens


def total_tokens(messages: Iterable[EncodedMessage]) -> int:
    return sum(map(tokens_of, messages))


def text_tokens(text: str) -> int:
    size = len(text) if text.isascii() else len(text.encode(errors="replace"))
    dense = text.startswith(_JSON_BEGINNINGS)
    return -(-size // (JSON_BYTES_PER_TOKEN if dense else BYTES_PER_TOKEN))


def text_of(content: object) -> str:
    """Return the text of a message's content in any form; other parts are named in brackets."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list):
        return "\n".join(map(_part, content))
    return _dumped(content)


def encode(fields: Mapping[str, Any]) -> EncodedMessage:
    # A lone surrogate, which JSON allows and UTF-8 does not, becomes a question mark.
    return EncodedMessage(_ENCODER.encode(fields).encode(errors="replace"))


def cut(text: str, tokens: int) -> str:
    """Return the text, truncated in the middle with a note if it has more than `tokens` tokens."""
    if text_tokens(text) <= tokens:
        return text
    raw = text.encode(errors="replace")
    note = f"\n[... truncated here; {len(text):,} characters in total ...]\n"
    room = tokens * JSON_BYTES_PER_TOKEN - len(note)
    if room <= 0:
        return ""
    end = room // 3
    return raw[: room - end].decode(errors="ignore") + note + raw[len(raw) - end :].decode(errors="ignore")


def _fields(message: EncodedMessage) -> Mapping[str, Any]:
    try:
        value = json.loads(message)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _calls(value: object) -> tuple[ProposedCall, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(_call(each) for each in value if isinstance(each, dict))


def _call(value: Mapping[str, Any]) -> ProposedCall:
    function = value.get("function")
    inner = function if isinstance(function, dict) else {}
    arguments = inner.get("arguments", "")
    return ProposedCall(
        id=_text(value.get("id")),
        name=_text(inner.get("name")),
        arguments=arguments if isinstance(arguments, str) else _dumped(arguments),
    )


def _tokens(fields: Mapping[str, Any], text: str, calls: tuple[ProposedCall, ...]) -> int:
    counted = MESSAGE_TOKENS + text_tokens(text) + MEDIA_TOKENS * _media(fields.get("content"))
    counted += sum(CALL_TOKENS + text_tokens(call.name) + text_tokens(call.arguments) for call in calls)
    # Other text fields (name, reasoning, refusal) also reach the model.
    others = (value for key, value in fields.items() if key not in ("role", "content", "tool_call_id"))
    return counted + sum(text_tokens(value) for value in others if isinstance(value, str))


def _media(content: object) -> int:
    return sum(map(_is_media, content)) if isinstance(content, list) else 0


def _is_media(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") in ("image_url", "input_image", "input_audio", "file")


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        if _is_media(part):
            return f"[{part['type']}]"
        if isinstance(part.get("text"), str):
            return str(part["text"])
    return _dumped(part)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _dumped(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "[nested too deeply]"
