"""Body of POST /v1/responses and POST /v1/runs: `input` in OpenAI's formats, converted to chat messages.

Values that a client gets back later (metadata, the previous response) are stored with the turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.adapters.http.field import boolean, encode, filled_text, given, metadata, refuse, text
from hermes.adapters.http.parameter import session_id
from hermes.adapters.openai_api.chat_request import OPTIONS, read_messages, small
from hermes.adapters.openai_api.responses.input_items import as_messages
from hermes.domain.ids import SessionId
from hermes.domain.message import EncodedMessage
from hermes.domain.values import dataclass

INSTRUCTIONS = "instructions"  # key of the instructions among the messages
EVENTS = "hermes.events"  # value of `include`
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
    own_events: bool  # the client asked for `hermes.*` events


def parse_turn_request(
    body: Any, default_model: str, stored: Mapping[str, Mapping[str, Any]] | None = None
) -> TurnRequest:
    """Check a body. `stored` has the items that it refers to, by id."""
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
        messages=_encoded(body, stored or {}),
        options=small(encode({**options, "hermes": kept}, "metadata")),
        user=options.get("user", ""),
        stream=boolean(body.get("stream", False), "stream"),
        store=store,
        previous=previous,
        session=session_id(text(body["session_id"], "session_id"), "session_id") if "session_id" in body else None,
        notice="The request's tools were ignored: tools run on the server." if body.get("tools") else "",
        own_events=EVENTS in _include(body.get("include", [])),
    )


def _include(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        refuse("include", "include must be a list of strings.")
    return value


def _encoded(body: Mapping[str, Any], stored: Mapping[str, Mapping[str, Any]]) -> tuple[EncodedMessage, ...]:
    messages = list(read_messages(as_messages(body.get("input"), stored), "input"))
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
