"""OpenAPI document, generated from the table of operations and the types of their bodies and answers."""

from __future__ import annotations

from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.openai_api.chat_request import MAX_MESSAGES, ROLES
from hermes.adapters.openai_api.openapi.operation import paths, schemas
from hermes.adapters.openai_api.openapi.operations import OPERATIONS
from hermes.adapters.openai_api.openapi.shape import BOOLEAN, FILLED, TEXT, nullable, object_of, ref

_DESCRIPTION = (
    "Long-lived conversations over an OpenAI-compatible API. Text only. "
    "Tools run on the server: `tools` and `functions` of a request are ignored, and the answer has a notice."
)


def document(version: str) -> JsonObject:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Hermes",
            "version": version or "0",
            "description": _DESCRIPTION,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "security": [{"key": []}],
        "paths": paths(OPERATIONS),
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
        },
    }


def _schemas() -> JsonObject:
    found = {**schemas(OPERATIONS), **_chat_schemas()}
    found["InputMessage"]["required"].remove("type")
    return found


def _chat_schemas() -> JsonObject:
    tokens = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}
    penalty = {"type": "number", "minimum": -2, "maximum": 2}
    options = {
        "n": {"const": 1},
        "stream": BOOLEAN,
        "stream_options": object_of({}, include_usage=BOOLEAN),
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "top_p": {"type": "number", "minimum": 0, "maximum": 1},
        "max_tokens": tokens,
        "max_completion_tokens": tokens,
        "presence_penalty": penalty,
        "frequency_penalty": penalty,
        "seed": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
        "stop": {"oneOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 4}]},
        "response_format": object_of({"type": {"enum": ["text", "json_object", "json_schema"]}}),
        "user": TEXT,
    }
    messages = {
        "type": "array",
        "items": ref("Message"),
        "minItems": 1,
        "maxItems": MAX_MESSAGES,
        "description": "The last one has the role user and is not empty.",
    }
    optional = {name: nullable(schema) for name, schema in options.items()}
    return {
        "Message": _message_schema(),
        "ChatRequest": object_of({"model": FILLED, "messages": messages}, **optional),
    }


def _message_schema() -> JsonObject:
    part = object_of({"type": {"const": "text"}, "text": TEXT})
    content = {"anyOf": [TEXT, {"type": "array", "items": part}]}
    function = object_of({"name": FILLED, "arguments": TEXT})
    call = object_of({"id": FILLED, "type": {"const": "function"}, "function": function})
    calls = {"type": "array", "items": call, "minItems": 1}
    name = nullable(FILLED)
    spoken = [role for role in ROLES if role != "tool"]
    return {
        "anyOf": [
            object_of({"role": {"enum": spoken}, "content": content}, name=name),
            object_of({"role": {"const": "assistant"}, "tool_calls": calls}, content=nullable(content), name=name),
            object_of({"role": {"const": "tool"}, "content": content, "tool_call_id": FILLED}, name=name),
        ]
    }
