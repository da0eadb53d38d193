"""The part of the description that is about turns: wishes about a session, responses, runs, and their events."""

from __future__ import annotations

from hermes.adapters.http.parameter import CANCEL_HEADER, IDEMPOTENCY_HEADER, LAST_EVENT_HEADER, SESSION_HEADER
from hermes.adapters.http.presentation import JsonObject
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
from hermes.domain.access.question import APPROVALS

HERMES_EVENTS = """\
| event | fields |
| --- | --- |
| `hermes.tool.started` | `call_id`, `name`, `summary` |
| `hermes.tool.progress` | `call_id`, `text` |
| `hermes.tool.completed` | `call_id`, `name`, `outcome` (ok, error, denied, stopped, not_run, unknown), `took_s` |
| `hermes.approval.request` | `call_id`, `name`, `question`, `choices`: a tool call waits for leave to run |
| `hermes.question` | `call_id`, `name`, `question`, `choices`: the model asks the person something |
| `hermes.answered` | `call_id`, `name`, `answer`, `by` |
| `hermes.steered` | `message_turn_id`: a message sent meanwhile has become part of this turn |
| `hermes.notice` | `text`: something the person should know |
| `hermes.session` | `session_id`: the conversation goes on under this id |"""

_RESPONSE_STREAM = f"""\
Server-sent events with OpenAI's `response.*` types, each with its `sequence_number`: created, in_progress, then for
each output item output_item.added, its parts and deltas, output_item.done, and at last completed, incomplete or
failed. Between them come events of our own, which clients that do not know them pass over:

{HERMES_EVENTS}

While a turn waits for a person the stream stays open, and goes on when the answer is given anywhere."""

_RUN_STREAM = """\
Server-sent events. Those with an `id` are in the journal: send the last one as `Last-Event-ID` to go on after it,
also after a restart of the daemon. The others are live only.

| event | id | fields besides `run_id`, `session_id`, `at` |
| --- | --- | --- |
| `run.accepted` | yes | |
| `run.started` | yes | `attempt` |
| `run.interrupted` | yes | `reason`; it goes on by itself |
| `message.delta` | no | `text` |
| `message.reset` | no | the reply broke off: what was said since the last tool call is said anew |
| `message.completed` | yes | `text`, `tool_calls` (`call_id`, `name`, `arguments`): the model wants tools |
| `tool.started`, `tool.completed` | yes | as in `hermes.tool.*` of a stream |
| `tool.progress`, `notice`, `steered` | no | as in `hermes.*` of a stream |
| `approval.request`, `question`, `answered`, `session` | yes | as in `hermes.*` of a stream |
| `run.completed` | yes | `output`, `finish_reason`, `usage` |
| `run.failed`, `run.cancelled` | yes | `error` |
| `daemon.stopping` | no | `text`, `last_event_id`: the run is not over; ask again when the daemon is back |

The stream ends after the last four. A client that comes back with the last event's id gets 204. A run whose session
was suspended ends in a `run.failed` without an id: it can still go on when the session is resumed."""

_SESSION = [parameter("id", "path", ID)]
_NAMED = [parameter("id", "path", FILLED)]
_KEY: JsonObject = {"type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$"}
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
            "Tell the turn in flight something; the model hears it after its next tools",
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
            "post": _wish("stopSession", "End the turn in flight, its tools and its questions", {"reason": title}),
        },
        "/api/sessions/{id}/fork": {
            "post": _wish("forkSession", "A session of its own that begins as a copy", {"title": title}, "201"),
        },
        "/api/sessions/{id}/compress": {
            "post": _wish("compressSession", "Go on from a summary, in a new session", {"topic": topic}, "202"),
        },
        "/api/sessions/{id}/answer": {
            "post": _posting(
                operation("answerSession", "Answer what its turn waits for", "SessionAfter", _SESSION),
                _answer_schema("answer"),
                {"answer": "once"},
            ),
        },
        "/api/sessions/{id}/undo": {
            "post": _wish("undoTurns", "Take back the last turns, also past a compression", {"turns": turns}),
        },
    }


def _response_paths() -> JsonObject:
    create = _posting(
        operation(
            "createResponse",
            "Say something and have it answered, as one of OpenAI's responses; also as the next after one of them",
            "Response",
            [
                parameter(SESSION_HEADER, "header", ID),
                parameter(IDEMPOTENCY_HEADER, "header", _KEY),
                parameter(CANCEL_HEADER, "header", {"type": "string", "enum": ["0", "1", "false", "true"]}),
            ],
        ),
        ref("ResponseRequest"),
        {"model": "hermes", "input": "What is in this folder?"},
    )
    create["responses"]["200"]["content"]["text/event-stream"] = {"schema": {**TEXT, "description": _RESPONSE_STREAM}}
    return {
        "/v1/responses": {"post": create},
        "/v1/responses/{id}": {
            "get": operation("getResponse", "A response as the journal has it", "Response", _NAMED),
            "delete": operation("deleteResponse", "Make its id unknown", "ResponseDeleted", _NAMED),
        },
    }


def _run_paths() -> JsonObject:
    create = _posting(
        operation(
            "createRun", "Start a turn and come back for it", "Run", [parameter("Idempotency-Key", "header", _KEY)]
        ),
        ref("RunRequest"),
        {"input": "Tidy up the downloads folder.", "session_id": "my-chat"},
        status="202",
    )
    events = operation(
        "followRun",
        "Its events, from the beginning or after one",
        "Run",
        [*_NAMED, parameter(LAST_EVENT_HEADER, "header", TEXT)],
    )
    events["responses"]["200"] = {
        "description": "Events",
        "content": {"text/event-stream": {"schema": {**TEXT, "description": _RUN_STREAM}}},
    }
    events["responses"]["204"] = {"description": "There is nothing after that event"}
    approve = operation("approveRun", "Say whether the tool call that waits may run", "Run", _NAMED)
    answer = operation("answerRun", "Answer what it asks", "Run", _NAMED)
    return {
        "/v1/runs": {"post": create},
        "/v1/runs/{id}": {"get": operation("getRun", "How a run stands", "Run", _NAMED)},
        "/v1/runs/{id}/events": {"get": events},
        "/v1/runs/{id}/approval": {
            "post": _posting(
                approve, object_of({"choice": {"enum": list(APPROVALS)}}, call_id=TEXT), {"choice": "once"}
            ),
        },
        "/v1/runs/{id}/answer": {"post": _posting(answer, _answer_schema("answer"), {"answer": "the second one"})},
        "/v1/runs/{id}/stop": {"post": operation("stopRun", "End it, its tools and its questions", "Run", _NAMED)},
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
        "Pending": {**pending, "description": "What a turn waits for a person to say."},
        "SessionAfter": object_of({"session_id": ID, "session": ref("Session")}),
        "Steered": object_of({"session_id": ID, "turn_id": TEXT, "handling": handling}),
    }


def _request_schemas() -> JsonObject:
    part = object_of({"type": {"enum": ["input_text", "output_text", "text"]}, "text": TEXT})
    content = {"anyOf": [TEXT, {"type": "array", "items": part}]}
    said = object_of({"role": {"enum": ["user", "assistant", "system", "developer"]}, "content": content})
    call = object_of({"type": {"const": "function_call"}, "call_id": FILLED, "name": FILLED, "arguments": TEXT})
    result = object_of({"type": {"const": "function_call_output"}, "call_id": FILLED, "output": content})
    items = {"type": "array", "items": {"anyOf": [said, call, result]}, "minItems": 1}
    pairs = {"type": "object", "maxProperties": 16, "additionalProperties": {"type": "string", "maxLength": 512}}
    common = {
        "model": FILLED,
        "instructions": FILLED,
        "metadata": pairs,
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "top_p": {"type": "number", "minimum": 0, "maximum": 1},
        "max_output_tokens": {"type": "integer", "minimum": 1},
        "user": TEXT,
    }
    optional = {name: nullable(schema) for name, schema in common.items()}
    needed: JsonObject = {"input": {"anyOf": [TEXT, items], "description": "The last item is the user's."}}
    previous = nullable(TEXT)
    return {
        "ResponseRequest": object_of(
            needed, **optional, previous_response_id=previous, store=nullable(BOOLEAN), stream=nullable(BOOLEAN)
        ),
        "RunRequest": object_of(needed, **optional, session_id=nullable(ID)),
    }


def _response_schemas() -> JsonObject:
    kinds = ["message", "function_call", "function_call_output"]
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
