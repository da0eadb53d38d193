"""OpenAPI paths and schemas of turns: session requests, responses, runs, and their events."""

from __future__ import annotations

from hermes.adapters.http.parameter import (
    CANCEL_HEADER,
    EVENTS_HEADER,
    IDEMPOTENCY_HEADER,
    KEY_HEADER,
    LAST_EVENT_HEADER,
    SESSION_HEADER,
)
from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.http.schema import components
from hermes.adapters.openai_api.openapi import surface_paths
from hermes.adapters.openai_api.openapi.shape import (
    BOOLEAN,
    COUNT,
    FILLED,
    ID,
    NUMBER,
    TEXT,
    WHOLE,
    nullable,
    object_of,
    operation,
    parameter,
    ref,
)
from hermes.adapters.openai_api.session_wish_api import MAX_ANSWER, MAX_TITLE, MAX_TOPIC, MAX_UNDO
from hermes.adapters.openai_api.turns.turn_request import ResponseRequest, RunRequest
from hermes.domain.access.question import APPROVALS

HERMES_EVENTS = """\
| event | fields |
| --- | --- |
| `hermes.tool.started` | `call_id`, `name`, `summary` |
| `hermes.tool.progress` | `call_id`, `text` |
| `hermes.tool.completed` | `call_id`, `name`, `outcome` (ok, error, denied, stopped, not_run, unknown), `took_s` |
| `hermes.approval.request` | `call_id`, `name`, `question`, `choices`: a tool call waits for approval |
| `hermes.question` | `call_id`, `name`, `question`, `choices`: the model asks the person a question |
| `hermes.answered` | `call_id`, `name`, `answer`, `by` |
| `hermes.steered` | `message_turn_id`: a message sent meanwhile became part of this turn |
| `hermes.notice` | `text`: a notice for the person |
| `hermes.session` | `session_id`: the conversation continues under this id |"""

_RESPONSE_STREAM = f"""\
Server-sent events with OpenAI's `response.*` types, each with its `sequence_number`: created, in_progress, then for
each output item output_item.added, its parts and deltas, output_item.done, and finally completed, incomplete or
failed. A tool that ran on the server is an `mcp_call` item. A stream that needs a person ends with the question as a
message; the next message answers it.

With the header `X-Hermes-Events: 1` or `include: ["hermes.events"]`, our own events are between these, and a stream
that needs a person stays open until the answer is given on any surface:

{HERMES_EVENTS}"""

_RUN_STREAM = """\
Server-sent events. Those with an `id` are stored: send the last one as `Last-Event-ID` to continue after it, also
after a restart of the daemon. The others are live only.

| event | id | fields besides `run_id`, `session_id`, `at` |
| --- | --- | --- |
| `run.accepted` | yes | |
| `run.started` | yes | `attempt` |
| `run.interrupted` | yes | `reason`; it continues automatically |
| `message.delta` | no | `text` |
| `message.reset` | no | discard the text since the last tool call: it comes again |
| `message.completed` | yes | `text`, `tool_calls` (`call_id`, `name`, `arguments`): the model calls tools |
| `tool.started`, `tool.completed` | yes | as in `hermes.tool.*` of a stream |
| `tool.progress`, `notice`, `steered` | no | as in `hermes.*` of a stream |
| `approval.request`, `question`, `answered`, `session` | yes | as in `hermes.*` of a stream |
| `run.completed` | yes | `output`, `finish_reason`, `usage` |
| `run.failed`, `run.cancelled` | yes | `error` |
| `daemon.stopping` | no | `text`, `last_event_id`: the run is not over; reconnect when the daemon is back |

The stream ends after the last four. A client that reconnects with the last event's id gets 204. A run whose session
was suspended ends with a `run.failed` without an id: it can continue when the session is resumed."""

_SESSION = [parameter("id", "path", ID)]
_NAMED = [parameter("id", "path", FILLED)]
_KEY: JsonObject = {"type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$"}
_FLAG: JsonObject = {"type": "string", "enum": ["0", "1", "false", "true"]}
_STATUSES = [
    "queued",
    "running",
    "waiting_for_approval",
    "waiting_for_answer",
    "completed",
    "failed",
    "cancelled",
]


def paths() -> JsonObject:
    return {**_session_paths(), **_response_paths(), **_run_paths()}


def _session_paths() -> JsonObject:
    title = {"type": "string", "minLength": 1, "maxLength": MAX_TITLE}
    topic = {"type": "string", "minLength": 1, "maxLength": MAX_TOPIC}
    turns = {"type": "integer", "minimum": 1, "maximum": MAX_UNDO, "default": 1}
    steer = _posting(
        operation(
            "steerSession",
            "Send a message to the running turn; the model sees it after its next tool calls",
            "Steered",
            [*_SESSION, parameter(IDEMPOTENCY_HEADER, "header", _KEY)],
        ),
        object_of({"text": FILLED}),
        {"text": "Only the files under src, please."},
        status="202",
    )
    return {
        "/api/sessions/{id}/steer": {"post": steer},
        "/api/sessions/{id}/stop": {
            "post": _wish("stopSession", "Stop the running turn with its tools and questions", {"reason": title}),
        },
        "/api/sessions/{id}/fork": {
            "post": _wish("forkSession", "Create a session as a copy of this one", {"title": title}, "201"),
        },
        "/api/sessions/{id}/compress": {
            "post": _wish("compressSession", "Continue from a summary, in a new session", {"topic": topic}, "202"),
        },
        "/api/sessions/{id}/answer": {
            "post": _posting(
                operation("answerSession", "Answer the question of its turn", "SessionAfter", _SESSION),
                _answer_schema("answer"),
                {"answer": "once"},
            ),
        },
        "/api/sessions/{id}/undo": {
            "post": _wish("undoTurns", "Undo the last turns, also across a compression", {"turns": turns}),
        },
    }


def _response_paths() -> JsonObject:
    create = _posting(
        operation(
            "createResponse",
            "Send a message and get its answer as a Response; optionally after a previous one",
            "Response",
            [
                parameter(SESSION_HEADER, "header", ID),
                parameter(KEY_HEADER, "header", FILLED),
                parameter(IDEMPOTENCY_HEADER, "header", _KEY),
                *(parameter(name, "header", _FLAG) for name in (CANCEL_HEADER, EVENTS_HEADER)),
            ],
        ),
        ref("ResponseRequest"),
        {"model": "hermes", "input": "What is in this folder?"},
    )
    create["responses"]["200"]["content"]["text/event-stream"] = {"schema": {**TEXT, "description": _RESPONSE_STREAM}}
    return {
        "/v1/responses": {"post": create},
        "/v1/responses/{id}": {
            "get": operation("getResponse", "Get a stored response", "Response", _NAMED),
            "delete": operation("deleteResponse", "Delete a response id", "ResponseDeleted", _NAMED),
        },
    }


def _run_paths() -> JsonObject:
    create = _posting(
        operation(
            "createRun",
            "Start a run",
            "Run",
            [
                parameter(SESSION_HEADER, "header", ID),
                parameter(KEY_HEADER, "header", FILLED),
                parameter("Idempotency-Key", "header", _KEY),
            ],
        ),
        ref("RunRequest"),
        {"input": "Tidy up the downloads folder.", "session_id": "my-chat"},
        status="202",
    )
    events = operation(
        "followRun",
        "Stream the events of a run, from the beginning or after one",
        "Run",
        [*_NAMED, parameter(LAST_EVENT_HEADER, "header", TEXT)],
    )
    events["responses"]["200"] = {
        "description": "Events",
        "content": {"text/event-stream": {"schema": {**TEXT, "description": _RUN_STREAM}}},
    }
    events["responses"]["204"] = {"description": "There are no events after that one"}
    approve = operation("approveRun", "Approve or deny the tool call that waits", "Run", _NAMED)
    answer = operation("answerRun", "Answer the question of a run", "Run", _NAMED)
    return {
        "/v1/runs": {"post": create, "get": surface_paths.run_list()},
        "/v1/runs/{id}": {"get": operation("getRun", "Get a run", "Run", _NAMED)},
        "/v1/runs/{id}/events": {"get": events},
        "/v1/runs/{id}/approval": {
            "post": _posting(
                approve, object_of({"choice": {"enum": list(APPROVALS)}}, call_id=TEXT), {"choice": "once"}
            ),
        },
        "/v1/runs/{id}/answer": {"post": _posting(answer, _answer_schema("answer"), {"answer": "the second one"})},
        "/v1/runs/{id}/stop": {
            "post": operation("stopRun", "Stop a run with its tools and questions", "Run", _NAMED)
        },
    }


def _wish(name: str, summary: str, fields: JsonObject, status: str = "200") -> JsonObject:
    wish = _posting(operation(name, summary, "SessionAfter", _SESSION), object_of({}, **fields), {}, status)
    wish["requestBody"]["required"] = False
    return wish


def _posting(made: JsonObject, schema: JsonObject, example: JsonObject, status: str = "200") -> JsonObject:
    made["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema, "example": example}}}
    responses = made["responses"]
    if status != "200":
        responses[status] = responses.pop("200")
    return made


def _answer_schema(name: str) -> JsonObject:
    return object_of({name: {"type": "string", "minLength": 1, "maxLength": MAX_ANSWER}}, call_id=TEXT)


# ---------------------------------------------------------------- schemas


def schemas() -> JsonObject:
    return {**_wish_schemas(), **_request_schemas(), **_response_schemas(), **_run_schemas()}


def _wish_schemas() -> JsonObject:
    pending = object_of(
        {
            "kind": {"enum": ["approval", "question"]},
            "call_id": TEXT,
            "question": TEXT,
            "choices": {"type": "array", "items": TEXT},
            "session_id": ID,
            "turn_id": TEXT,
        }
    )
    handling = {"enum": ["started", "queued", "steering", "interrupting", "answer"]}
    return {
        "Pending": {**pending, "description": "Question that a turn waits for."},
        "SessionAfter": object_of({"session_id": ID, "session": ref("Session")}),
        "Steered": object_of({"session_id": ID, "turn_id": TEXT, "handling": handling}),
    }


def _request_schemas() -> JsonObject:
    found: JsonObject = dict(components(ResponseRequest, RunRequest))
    found["InputMessage"]["required"].remove("type")
    return found


def _response_schemas() -> JsonObject:
    kinds = ["message", "mcp_call"]
    item = object_of({"id": TEXT, "type": {"enum": kinds}, "status": TEXT})
    usage = object_of({"input_tokens": COUNT, "output_tokens": COUNT, "total_tokens": COUNT})
    hermes = object_of({"session_id": ID, "turn_id": TEXT}, notice=TEXT, pending=ref("Pending"))
    return {
        "Response": object_of(
            {
                "id": TEXT,
                "object": {"const": "response"},
                "created_at": WHOLE,
                "status": {"enum": ["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]},
                "model": TEXT,
                "output": {"type": "array", "items": item},
                "error": nullable(object_of({"code": TEXT, "message": TEXT})),
                "instructions": nullable(TEXT),
                "previous_response_id": nullable(TEXT),
                "store": BOOLEAN,
                "metadata": {"type": "object"},
                "usage": nullable(usage),
                "hermes": hermes,
            }
        ),
        "ResponseDeleted": object_of({"id": TEXT, "object": {"const": "response"}, "deleted": {"const": True}}),
    }


def _run_schemas() -> JsonObject:
    usage = object_of(
        {"prompt_tokens": COUNT, "completion_tokens": COUNT, "cached_tokens": COUNT, "cost_usd": NUMBER}
    )
    run = object_of(
        {
            "run_id": TEXT,
            "object": {"const": "run"},
            "status": {"enum": _STATUSES},
            "session_id": ID,
            "turn_id": TEXT,
            "created_at": nullable(NUMBER),
            "ended_at": nullable(NUMBER),
            "output": nullable(TEXT),
            "usage": usage,
            "error": nullable(object_of({"code": TEXT, "message": TEXT})),
            "pending": nullable(ref("Pending")),
            "metadata": {"type": "object"},
        },
        handling=TEXT,
        notice=TEXT,
    )
    return {"Run": run}
