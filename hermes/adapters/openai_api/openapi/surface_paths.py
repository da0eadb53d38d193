"""OpenAPI paths and schemas beside turns: lists of runs, open approvals."""

from __future__ import annotations

from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.openai_api.openapi.shape import (
    BOOLEAN,
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
        "/api/approvals": {
            "get": operation("listApprovals", "List open approvals and questions of all sessions", "ApprovalList"),
        },
        "/api/approvals/{id}": {
            "get": operation("getApproval", "Get an open approval or question", "Approval", _NAMED),
            "post": answer,
        },
    }


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
        "Approval": approval,
        "ApprovalList": object_of({"approvals": {"type": "array", "items": ref("Approval")}}),
        "ApprovalAnswered": object_of({"id": TEXT, "answered": {"const": True}, "session_id": ID}),
    }
