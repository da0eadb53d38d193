"""OpenAPI document, written by hand as the promised API. A test compares it with the routes."""

from __future__ import annotations

from hermes.adapters.http.body import MAX_DEPTH
from hermes.adapters.http.parameter import (
    CANCEL_HEADER,
    IDEMPOTENCY_HEADER,
    KEY_HEADER,
    REPLAY_HEADER,
    SESSION_HEADER,
    TURN_HEADER,
)
from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.openai_api.chat_request import MAX_MESSAGES, ROLES
from hermes.adapters.openai_api.openapi import process_paths, surface_paths, turn_paths
from hermes.adapters.openai_api.openapi.shape import (
    BOOLEAN,
    COUNT,
    FILLED,
    ID,
    NUMBER,
    TEXT,
    WHOLE,
    answer_of,
    json_of,
    nullable,
    object_of,
    open_operation,
    operation,
    parameter,
    ref,
)
from hermes.adapters.openai_api.session_api import MAX_LISTED
from hermes.adapters.openai_api.session_api import MAX_MESSAGES as MAX_PAGE

_DESCRIPTION = (
    "Long-lived conversations over an OpenAI-compatible API. Text only. "
    "Tools run on the server: `tools` and `functions` of a request are ignored, and the answer has a notice."
)
_STREAM = f"""\
Server-sent events; the data of each is a `chat.completion.chunk`, in this order:

1. the role chunk: delta `{{"role": "assistant", "content": ""}}`, sent when the message is stored
2. deltas: `{{"content": ...}}`, any number: all text of the model in this turn, also before tool calls;
      the texts of several model calls are separated by a blank line, and a plain answer's `content` is the last one
3. the finish chunk: an empty delta, `finish_reason`, and the field `hermes` as in a plain answer
4. `event: hermes.session`: a chunk that adds nothing (empty delta, no finish_reason), with `hermes`, `session_id`
   and `turn_id`
5. with `stream_options.include_usage`, the usage chunk: no choices, `usage`, and `hermes`
6. `data: [DONE]`

Lines that start with a colon keep an idle stream alive. A turn that fails after the stream started ends it with
`data: {{"error": ...}}` (the schema Error), and no [DONE] follows.

Other events are named events between these. Their data are chunks that add nothing to the text; their fields are in
`hermes`, beside `session_id` and `turn_id`:

{turn_paths.HERMES_EVENTS}

While the turn waits for a person the stream stays open, and continues when the answer is given anywhere. A plain
request does not wait: its answer contains the question, `hermes.pending` has it as data, and the turn stays open."""


_TOKENS = ("prompt_tokens", "completion_tokens", "cached_tokens")


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
        "paths": {**_paths(), **turn_paths.paths(), **surface_paths.paths()},
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
        },
    }


# ---------------------------------------------------------------- paths


def _paths() -> JsonObject:
    session = [parameter("id", "path", ID)]
    page = {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": 100}
    listed = {"type": "integer", "minimum": 1, "maximum": MAX_LISTED, "default": 50}
    exact = parameter("exact", "query", {"enum": ["0", "1"]})
    position = {"type": "integer", "minimum": -1, "maximum": 2**63 - 1}
    return {
        "/v1/chat/completions": {"post": _chat_operation()},
        "/v1/models": {"get": operation("listModels", "List model names", "ModelList")},
        "/v1/models/{id}": {
            "get": operation("getModel", "Get a model", "Model", [parameter("id", "path", FILLED)]),
        },
        "/api/sessions": {
            "get": operation(
                "listSessions",
                "List sessions, last active first",
                "SessionList",
                [parameter("limit", "query", listed), parameter("after", "query", ID)],
            ),
        },
        "/api/sessions/{id}": {
            "get": operation(
                "getSession",
                "Get the live end of a session's lineage, or with `exact` this session",
                "SessionView",
                [*session, exact],
            ),
            "delete": operation("deleteSession", "Erase a session and its messages", "Deleted", session),
        },
        "/api/sessions/{id}/messages": {
            "get": operation(
                "listMessages",
                "List messages after a position, oldest first; without one, the last page",
                "Transcript",
                [*session, parameter("limit", "query", page), parameter("after", "query", position), exact],
            ),
        },
        **process_paths.paths(),
        "/api/commands": {
            "get": operation("listCommands", "List slash commands", "CommandList"),
            "post": _command_operation([], "runCommandAnywhere"),
        },
        "/api/sessions/{id}/commands": {"post": _command_operation(session)},
        "/health": {"get": open_operation("getHealth", "Liveness of the daemon", {"200": answer_of("Health")})},
        "/health/ready": {
            "get": open_operation(
                "getReadiness",
                "Readiness of the daemon",
                {"200": answer_of("Readiness"), "503": answer_of("Readiness")},
            ),
        },
        "/openapi.json": {
            "get": open_operation(
                "getDescription",
                "This document",
                {"200": {"description": "OpenAPI 3.1", "content": json_of({"type": "object"})}},
            ),
        },
    }


def _chat_operation() -> JsonObject:
    flag = {"type": "string", "enum": ["0", "1", "false", "true"]}
    key = {"type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$"}
    chat = operation(
        "createChatCompletion",
        "Send a message and get its answer. With a session id, only the last message is used, in the stored session",
        "Completion",
        [
            parameter(SESSION_HEADER, "header", ID),
            parameter(KEY_HEADER, "header", FILLED),
            parameter(IDEMPOTENCY_HEADER, "header", key),
            parameter(CANCEL_HEADER, "header", flag),
        ],
    )
    chat["requestBody"] = {
        "required": True,
        "description": f"UTF-8, at most {MAX_DEPTH} levels deep.",
        "content": json_of(ref("ChatRequest")),
    }
    answer = chat["responses"]["200"]
    answer["description"] = "A Completion or, with `stream`, its events"
    answer["content"]["text/event-stream"] = {"schema": {**TEXT, "description": _STREAM}}
    answer["headers"] = {name: {"schema": TEXT} for name in (SESSION_HEADER, TURN_HEADER, REPLAY_HEADER)}
    return chat


def _command_operation(session: list[JsonObject], name: str = "runCommand") -> JsonObject:
    where = "in a session" if session else "without a session"
    command = operation(name, f"Run a slash command {where}", "CommandReply", session)
    command["requestBody"] = {"required": True, "content": json_of(ref("CommandRequest"))}
    command["responses"]["200"]["headers"] = {name: {"schema": TEXT} for name in (SESSION_HEADER, TURN_HEADER)}
    return command


# ---------------------------------------------------------------- schemas


def _schemas() -> JsonObject:
    return {
        **_request_schemas(),
        **_answer_schemas(),
        **_session_schemas(),
        **_command_schemas(),
        **process_paths.schemas(),
        **turn_paths.schemas(),
        **surface_paths.schemas(),
    }


def _request_schemas() -> JsonObject:
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


def _answer_schemas() -> JsonObject:
    message = object_of({"role": {"const": "assistant"}, "content": TEXT, "refusal": {"type": "null"}})
    choice = object_of({"index": {"const": 0}, "message": message, "finish_reason": TEXT})
    tokens = object_of({"prompt_tokens": COUNT, "completion_tokens": COUNT, "total_tokens": COUNT})
    hermes = object_of({"session_id": ID, "turn_id": TEXT}, notice=TEXT, pending=ref("Pending"))
    error = object_of({"message": TEXT, "type": TEXT, "param": nullable(TEXT), "code": nullable(TEXT)})
    return {
        "Completion": object_of(
            {
                "id": TEXT,
                "object": {"const": "chat.completion"},
                "created": WHOLE,
                "model": TEXT,
                "choices": {"type": "array", "items": choice, "minItems": 1, "maxItems": 1},
                "usage": tokens,
                "hermes": hermes,
            }
        ),
        "Model": object_of({"id": TEXT, "object": {"const": "model"}, "created": WHOLE, "owned_by": TEXT}),
        "ModelList": object_of({"object": {"const": "list"}, "data": {"type": "array", "items": ref("Model")}}),
        "Error": object_of({"error": error}),
        "Health": object_of({"status": {"const": "ok"}, "version": TEXT}),
        "Readiness": object_of({"status": {"enum": ["ready", "not ready"]}}, reason=TEXT, model=_model_health()),
    }


def _model_health() -> JsonObject:
    failure = object_of(
        {"at": NUMBER, "model": TEXT, "code": TEXT, "cause": TEXT, "status": nullable(COUNT), "address": TEXT}
    )
    return object_of({}, answered_at=nullable(NUMBER), last_failure=nullable(failure))


def _session_schemas() -> JsonObject:
    phases = ["idle", "running", "waiting", "resume_pending", "suspended", "ended"]
    failure = object_of(
        {"kind": TEXT, "message": TEXT, "retry_after_s": nullable(NUMBER)}, address=TEXT, cause=TEXT, status=COUNT
    )
    message = object_of(
        {"seq": COUNT, "at": NUMBER, "turn": TEXT, "role": TEXT, "note": BOOLEAN, "content": nullable(TEXT)},
        by=TEXT,
        answered=TEXT,
    )
    session = {
        **dict.fromkeys(("id",), ID),
        **dict.fromkeys(("key", "title", "reason", "platform"), TEXT),
        "phase": {"enum": phases},
        **dict.fromkeys(("since", "created_at", "active_at"), NUMBER),
        **dict.fromkeys(("parent", "successor"), nullable(ID)),
        **dict.fromkeys(("running_turn", "role"), nullable(TEXT)),
        "compressing": BOOLEAN,
        **dict.fromkeys(("queued", "interruptions", "messages", "turns"), COUNT),
        "usage": object_of({**dict.fromkeys(_TOKENS, COUNT), "cost_usd": NUMBER}),
        "last_failure": nullable(failure),
    }
    ids = {"type": "array", "items": ID}
    waiting = object_of({"turn_id": TEXT, "accepted_at": NUMBER, "steer": BOOLEAN})
    return {
        "Session": object_of(session),
        "SessionList": object_of({"sessions": {"type": "array", "items": ref("Session")}}),
        "SessionView": object_of(
            {
                "session": ref("Session"),
                "why": TEXT,
                "waits_for": TEXT,
                "lineage": ids,
                "live": BOOLEAN,
                "mailbox": COUNT,
                "queue": {"type": "array", "items": waiting},
                "preferences": object_of(
                    {**dict.fromkeys(("title", "model", "personality", "reasoning", "busy"), TEXT), "yolo": BOOLEAN}
                ),
                "pending": nullable(ref("Pending")),
            }
        ),
        "Deleted": object_of({"id": ID, "deleted": {"const": True}}),
        "Transcript": object_of(
            {"session_id": ID, "messages": {"type": "array", "items": message}, "has_more": BOOLEAN}
        ),
    }


def _command_schemas() -> JsonObject:
    texts = {"type": "array", "items": TEXT}
    command = object_of(
        {"name": FILLED, "aliases": texts, "usage": FILLED, "help": FILLED, "group": FILLED, "choices": texts}
    )
    rows = {"type": "array", "items": texts, "description": "The text as a table, if it is one; headings first."}
    done = {**BOOLEAN, "description": "False if nothing was done; the text tells why."}
    where = {**ID, "description": "Current session of the conversation."}
    return {
        "CommandList": object_of({"commands": {"type": "array", "items": command}}),
        "CommandRequest": object_of({"text": {**FILLED, "examples": ["/undo 2"]}}, user=nullable(TEXT)),
        "CommandReply": object_of(
            {
                "ok": done,
                "text": TEXT,
                "session_id": where,
                "turn_id": nullable(TEXT),
                "rows": rows,
                "choices": {**texts, "description": "Arguments to repeat the command with."},
            }
        ),
    }
