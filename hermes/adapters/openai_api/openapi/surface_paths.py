"""OpenAPI paths and schemas beside turns: lists of runs, open approvals, events of all sessions."""

from __future__ import annotations

from hermes.adapters.http.parameter import LAST_EVENT_HEADER
from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.http.stream_token import DEFAULT_TTL_S, MAX_TTL_S, TokenScope
from hermes.adapters.openai_api.openapi.shape import (
    BOOLEAN,
    COUNT,
    FILLED,
    ID,
    NUMBER,
    TEXT,
    json_of,
    nullable,
    object_of,
    operation,
    parameter,
    ref,
)
from hermes.adapters.openai_api.runs.run_api import MAX_LISTED as MAX_RUNS
from hermes.adapters.openai_api.runs.run_reader import STATUSES
from hermes.adapters.openai_api.session_wish_api import MAX_ANSWER
from hermes.domain.access.question import APPROVALS

_EVENTS = """\
Server-sent events of all sessions. Those of turns have the names and fields of a run's events, with `turn_id` and
`platform`. Stored ones have an `id`: send the last one as `Last-Event-ID` to continue after it, also after a restart.

| event | id | fields besides `session_id`, `platform` |
| --- | --- | --- |
| `stream.opened` | yes | `position`: first event of a stream without a gap |
| `gap` | yes | `reason` (too_old, unknown_position), `requested`, `position`: events are missing, read the lists |
| events of runs | as there | `run_id`, `turn_id`, and as there |
| `session.started` | yes | `reason`, `parent` |
| `session.ended`, `session.suspended`, `session.resumed` | yes | `reason` |
| `session.continued` | yes | `successor`, `reason` |
| `session.updated` | yes | `preferences` |
| `session.undone` | yes | `turns` |
| `session.compressing`, `session.compression_failed` | yes | `reason` |
| `session.state` | no | `phase`, `reason` |
| `process.started`, `process.ended` | no | `process_id`, `command`, and `end` |
| `daemon.stopping` | no | `text`, `last_event_id` |"""
_NAMED = [parameter("id", "path", FILLED)]
CURSOR: JsonObject = {"type": "string", "pattern": "^[1-9][0-9]{0,18}$"}


def run_list() -> JsonObject:
    limit = {"type": "integer", "minimum": 1, "maximum": MAX_RUNS, "default": 20}
    return operation(
        "listRuns",
        "List runs, newest first. A page may be short although `next_cursor` is set",
        "RunList",
        [
            parameter("limit", "query", limit),
            parameter("cursor", "query", CURSOR),
            parameter("session_id", "query", ID),
            parameter("platform", "query", TEXT),
            parameter("status", "query", {"enum": list(STATUSES)}),
        ],
    )


def paths() -> JsonObject:
    answer = operation("answerApproval", "Approve, deny or answer by id", "ApprovalAnswered", _NAMED)
    said = {"type": "string", "minLength": 1, "maxLength": MAX_ANSWER}
    fields = object_of({}, choice={"enum": list(APPROVALS)}, answer=said)
    answer["requestBody"] = {"required": True, "content": json_of(fields)}
    return {
        "/api/events": {"get": _events()},
        "/api/tokens": {"post": _token()},
        "/api/approvals": {
            "get": operation("listApprovals", "List open approvals and questions of all sessions", "ApprovalList"),
        },
        "/api/approvals/{id}": {
            "get": operation("getApproval", "Get an open approval or question", "Approval", _NAMED),
            "post": answer,
        },
    }


def _events() -> JsonObject:
    events = operation(
        "followEvents",
        "Stream the events of all sessions, from now on or after one",
        "Run",
        [
            parameter("session_id", "query", ID),
            parameter("platform", "query", TEXT),
            parameter("type", "query", {**TEXT, "description": "Names or their first parts, separated by commas"}),
            parameter("after", "query", CURSOR),
            parameter(LAST_EVENT_HEADER, "header", CURSOR),
        ],
    )
    events["responses"]["200"] = {
        "description": "Events",
        "content": {"text/event-stream": {"schema": {**TEXT, "description": _EVENTS}}},
    }
    return events


def _token() -> JsonObject:
    create = operation("createToken", "Create a short-lived token for a query string", "Token")
    ttl = {"type": "integer", "minimum": 1, "maximum": MAX_TTL_S, "default": DEFAULT_TTL_S}
    fields = object_of({}, scope={"enum": list(TokenScope)}, ttl_s=ttl)
    create["requestBody"] = {"required": False, "content": json_of(fields)}
    create["responses"]["201"] = create["responses"].pop("200")
    return create


def schemas() -> JsonObject:
    approval = object_of(
        {
            "id": TEXT,
            "kind": {"enum": ["approval", "question"]},
            "call_id": TEXT,
            "name": {**TEXT, "description": "Tool that asks."},
            "question": TEXT,
            "choices": {"type": "array", "items": TEXT},
            "session_id": ID,
            "turn_id": TEXT,
            "run_id": TEXT,
            "asked_at": NUMBER,
            "title": TEXT,
            "platform": TEXT,
        }
    )
    return {
        "RunList": object_of(
            {
                "object": {"const": "list"},
                "data": {"type": "array", "items": ref("Run")},
                "has_more": BOOLEAN,
                "next_cursor": nullable(CURSOR),
            }
        ),
        "Token": object_of({"token": TEXT, "scope": {"enum": list(TokenScope)}, "expires_at": COUNT}),
        "Approval": approval,
        "ApprovalList": object_of({"approvals": {"type": "array", "items": ref("Approval")}}),
        "ApprovalAnswered": object_of({"id": TEXT, "answered": {"const": True}, "session_id": ID}),
    }
