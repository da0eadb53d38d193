"""The API described for machines, by hand: what is here is promised. A test compares it with the routes."""

from __future__ import annotations

from hermes.adapters.openai_api.body import MAX_DEPTH
from hermes.adapters.openai_api.chat_request import MAX_MESSAGES, ROLES
from hermes.adapters.openai_api.parameter import (
    CANCEL_HEADER,
    IDEMPOTENCY_HEADER,
    REPLAY_HEADER,
    SESSION_HEADER,
    SESSION_ID_PATTERN,
    TURN_HEADER,
)
from hermes.adapters.openai_api.session_api import MAX_LISTED
from hermes.adapters.openai_api.session_api import MAX_MESSAGES as MAX_PAGE
from hermes.adapters.presentation import JsonObject

_DESCRIPTION = (
    "Long-lived conversations over an OpenAI-compatible API. For now it takes and gives text only. "
    "Tools run on the server: `tools` and `functions` of a request are not taken, and the answer's notice says so."
)
_STREAM = """\
Server-sent events; the data of each is a `chat.completion.chunk`, in this order:

1. the role chunk: delta `{"role": "assistant", "content": ""}`, sent when the message is stored
2. deltas: `{"content": ...}`, any number of them
3. the finish chunk: an empty delta, `finish_reason`, and the field `hermes` as in a plain answer
4. `event: hermes.session`: a chunk that adds nothing (empty delta, no finish_reason), with `hermes`, `session_id`
   and `turn_id`
5. with `stream_options.include_usage`, the usage chunk: no choices, `usage`, and `hermes`
6. `data: [DONE]`

Lines that begin with a colon keep a silent stream alive. A turn that fails after the stream began ends it with
`data: {"error": ...}` (the schema Error), and no [DONE] follows."""

_ID: JsonObject = {"type": "string", "pattern": f"^{SESSION_ID_PATTERN}$"}
_TEXT: JsonObject = {"type": "string"}
_FILLED: JsonObject = {"type": "string", "minLength": 1}
_WHOLE: JsonObject = {"type": "integer"}
_COUNT: JsonObject = {"type": "integer", "minimum": 0}
_NUMBER: JsonObject = {"type": "number"}
_BOOLEAN: JsonObject = {"type": "boolean"}


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
        "paths": _paths(),
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
        },
    }


# ---------------------------------------------------------------- paths


def _paths() -> JsonObject:
    session = [_parameter("id", "path", _ID)]
    page = {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": 100}
    listed = {"type": "integer", "minimum": 1, "maximum": MAX_LISTED, "default": 50}
    position = {"type": "integer", "minimum": -1, "maximum": 2**63 - 1}
    return {
        "/v1/chat/completions": {"post": _chat_operation()},
        "/v1/models": {"get": _operation("listModels", "The names that `model` can have", "ModelList")},
        "/v1/models/{id}": {
            "get": _operation("getModel", "One of them", "Model", [_parameter("id", "path", _FILLED)]),
        },
        "/api/sessions": {
            "get": _operation(
                "listSessions",
                "Sessions, the last active first",
                "SessionList",
                [_parameter("limit", "query", listed), _parameter("after", "query", _ID)],
            ),
        },
        "/api/sessions/{id}": {
            "get": _operation("getSession", "The live end of this id's lineage", "SessionView", session),
            "delete": _operation("deleteSession", "Forget a session and all that was said in it", "Deleted", session),
        },
        "/api/sessions/{id}/messages": {
            "get": _operation(
                "listMessages",
                "What was said: after a position, oldest first; without one, the last of it",
                "Transcript",
                [*session, _parameter("limit", "query", page), _parameter("after", "query", position)],
            ),
        },
        "/health": {"get": _open("getHealth", "Whether the daemon is there", {"200": _answer("Health")})},
        "/health/ready": {
            "get": _open(
                "getReadiness", "Whether it can take work", {"200": _answer("Readiness"), "503": _answer("Readiness")}
            ),
        },
        "/openapi.json": {
            "get": _open(
                "getDescription",
                "This document",
                {"200": {"description": "OpenAPI 3.1", "content": _json({"type": "object"})}},
            ),
        },
    }


def _chat_operation() -> JsonObject:
    flag = {"type": "string", "enum": ["0", "1"]}
    key = {"type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$"}
    operation = _operation(
        "createChatCompletion",
        "Say something and have it answered; with a session id, in the stored session and by the last message alone",
        "Completion",
        [
            _parameter(SESSION_HEADER, "header", _ID),
            _parameter(IDEMPOTENCY_HEADER, "header", key),
            _parameter(CANCEL_HEADER, "header", flag),
        ],
    )
    operation["requestBody"] = {
        "required": True,
        "description": f"UTF-8, at most {MAX_DEPTH} levels deep.",
        "content": _json(_ref("ChatRequest")),
    }
    answer = operation["responses"]["200"]
    answer["description"] = "A Completion or, with `stream`, its events"
    answer["content"]["text/event-stream"] = {"schema": {**_TEXT, "description": _STREAM}}
    answer["headers"] = {name: {"schema": _TEXT} for name in (SESSION_HEADER, TURN_HEADER, REPLAY_HEADER)}
    return operation


def _operation(name: str, summary: str, schema: str, parameters: list[JsonObject] | None = None) -> JsonObject:
    responses = {"200": _answer(schema), "4XX": _answer("Error"), "5XX": _answer("Error")}
    return {"operationId": name, "summary": summary, "parameters": parameters or [], "responses": responses}


def _open(name: str, summary: str, responses: JsonObject) -> JsonObject:
    responses = {**responses, "4XX": _answer("Error")}
    return {"operationId": name, "summary": summary, "security": [], "responses": responses}


def _parameter(name: str, place: str, schema: JsonObject) -> JsonObject:
    return {"name": name, "in": place, "required": place == "path", "schema": schema}


def _answer(schema: str) -> JsonObject:
    return {"description": schema, "content": _json(_ref(schema))}


def _json(schema: JsonObject) -> JsonObject:
    return {"application/json": {"schema": schema}}


def _ref(schema: str) -> JsonObject:
    return {"$ref": f"#/components/schemas/{schema}"}


# ---------------------------------------------------------------- schemas


def _schemas() -> JsonObject:
    return {**_request_schemas(), **_answer_schemas(), **_session_schemas()}


def _request_schemas() -> JsonObject:
    tokens = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}
    penalty = {"type": "number", "minimum": -2, "maximum": 2}
    options = {
        "n": {"const": 1},
        "stream": _BOOLEAN,
        "stream_options": _object({}, include_usage=_BOOLEAN),
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "top_p": {"type": "number", "minimum": 0, "maximum": 1},
        "max_tokens": tokens,
        "max_completion_tokens": tokens,
        "presence_penalty": penalty,
        "frequency_penalty": penalty,
        "seed": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
        "stop": {"oneOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 4}]},
        "response_format": _object({"type": {"enum": ["text", "json_object", "json_schema"]}}),
        "user": _TEXT,
    }
    messages = {
        "type": "array",
        "items": _ref("Message"),
        "minItems": 1,
        "maxItems": MAX_MESSAGES,
        "description": "The last one is the user's, and not empty.",
    }
    optional = {name: _nullable(schema) for name, schema in options.items()}
    return {
        "Message": _message_schema(),
        "ChatRequest": _object({"model": _FILLED, "messages": messages}, **optional),
    }


def _message_schema() -> JsonObject:
    part = _object({"type": {"const": "text"}, "text": _TEXT})
    content = {"anyOf": [_TEXT, {"type": "array", "items": part}]}
    function = _object({"name": _FILLED, "arguments": _TEXT})
    call = _object({"id": _FILLED, "type": {"const": "function"}, "function": function})
    calls = {"type": "array", "items": call, "minItems": 1}
    name = _nullable(_FILLED)
    spoken = [role for role in ROLES if role != "tool"]
    return {
        "anyOf": [
            _object({"role": {"enum": spoken}, "content": content}, name=name),
            _object({"role": {"const": "assistant"}, "tool_calls": calls}, content=_nullable(content), name=name),
            _object({"role": {"const": "tool"}, "content": content, "tool_call_id": _FILLED}, name=name),
        ]
    }


def _answer_schemas() -> JsonObject:
    message = _object({"role": {"const": "assistant"}, "content": _TEXT, "refusal": {"type": "null"}})
    choice = _object({"index": {"const": 0}, "message": message, "finish_reason": _TEXT})
    tokens = _object({"prompt_tokens": _COUNT, "completion_tokens": _COUNT, "total_tokens": _COUNT})
    hermes = _object({"session_id": _ID, "turn_id": _TEXT}, notice=_TEXT)
    error = _object({"message": _TEXT, "type": _TEXT, "param": _nullable(_TEXT), "code": _nullable(_TEXT)})
    return {
        "Completion": _object(
            {
                "id": _TEXT,
                "object": {"const": "chat.completion"},
                "created": _WHOLE,
                "model": _TEXT,
                "choices": {"type": "array", "items": choice, "minItems": 1, "maxItems": 1},
                "usage": tokens,
                "hermes": hermes,
            }
        ),
        "Model": _object({"id": _TEXT, "object": {"const": "model"}, "created": _WHOLE, "owned_by": _TEXT}),
        "ModelList": _object({"object": {"const": "list"}, "data": {"type": "array", "items": _ref("Model")}}),
        "Error": _object({"error": error}),
        "Health": _object({"status": {"const": "ok"}, "version": _TEXT}),
        "Readiness": _object({"status": {"enum": ["ready", "not ready"]}}, reason=_TEXT),
    }


def _session_schemas() -> JsonObject:
    phases = ["idle", "running", "waiting", "resume_pending", "suspended", "ended"]
    failure = _object({"kind": _TEXT, "message": _TEXT, "retry_after_s": _nullable(_NUMBER)})
    message = _object({"seq": _COUNT, "at": _NUMBER, "turn": _TEXT, "role": _TEXT, "content": _nullable(_TEXT)})
    session = {
        **dict.fromkeys(("id",), _ID),
        **dict.fromkeys(("key", "reason", "platform"), _TEXT),
        "phase": {"enum": phases},
        **dict.fromkeys(("since", "created_at", "active_at"), _NUMBER),
        **dict.fromkeys(("parent", "successor"), _nullable(_ID)),
        "running_turn": _nullable(_TEXT),
        **dict.fromkeys(("queued", "interruptions", "messages", "turns"), _COUNT),
        "usage": _object({"prompt_tokens": _COUNT, "completion_tokens": _COUNT}),
        "last_failure": _nullable(failure),
    }
    ids = {"type": "array", "items": _ID}
    return {
        "Session": _object(session),
        "SessionList": _object({"sessions": {"type": "array", "items": _ref("Session")}}),
        "SessionView": _object(
            {"session": _ref("Session"), "why": _TEXT, "lineage": ids, "live": _BOOLEAN, "mailbox": _COUNT}
        ),
        "Deleted": _object({"id": _ID, "deleted": {"const": True}}),
        "Transcript": _object({"session_id": _ID, "messages": {"type": "array", "items": message}}),
    }


def _object(required: JsonObject, **optional: JsonObject) -> JsonObject:
    return {"type": "object", "properties": {**required, **optional}, "required": list(required)}


def _nullable(schema: JsonObject) -> JsonObject:
    return {"anyOf": [schema, {"type": "null"}]}
