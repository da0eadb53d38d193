"""OpenAPI paths and schemas of background processes."""

from __future__ import annotations

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
from hermes.adapters.openai_api.process_api import LOG_BYTES, MAX_LOG_BYTES


def paths() -> JsonObject:
    which = [parameter("id", "path", FILLED)]
    offset = {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}
    limit = {"type": "integer", "minimum": 1, "maximum": MAX_LOG_BYTES, "default": LOG_BYTES}
    part = [parameter("offset", "query", offset), parameter("limit", "query", limit)]
    return {
        "/api/sessions/{id}/processes": {
            "get": operation(
                "listProcesses",
                "List running and recently ended processes of a session, oldest first",
                "ProcessList",
                [parameter("id", "path", ID)],
            ),
        },
        "/api/processes": {
            "get": operation("listAllProcesses", "List processes of all sessions", "AllProcesses"),
        },
        "/api/processes/{id}": {"get": operation("getProcess", "Get a process", "OneProcess", which)},
        "/api/processes/{id}/log": {
            "get": operation(
                "readProcess", "Read output from a byte offset; without one, its end", "ProcessLog", [*which, *part]
            ),
        },
        "/api/processes/{id}/kill": {
            "post": operation("killProcess", "Kill a process and everything it started", "OneProcess", which)
        },
    }


def schemas() -> JsonObject:
    blocks = {**BOOLEAN, "description": "It delays a reset of the conversation."}
    process = {
        "id": FILLED,
        "session_id": {**ID, "description": "The session that started it."},
        "command": TEXT,
        "pid": COUNT,
        "running": BOOLEAN,
        **dict.fromkeys(("started_at", "age_s", "heartbeat_at", "active_at", "cpu_s"), NUMBER),
        **dict.fromkeys(("memory_bytes", "output_bytes"), COUNT),
        "ports": {"type": "array", "items": COUNT, "description": "TCP ports that it listens on."},
        "ended_at": nullable(NUMBER),
        **dict.fromkeys(("exit_code", "signal"), nullable(WHOLE)),
        "reason": {"enum": ["", "exited", "killed", "memory", "processes", "output", "lost"]},
        "detail": TEXT,
        "blocks_reset": blocks,
        "explanation": {**TEXT, "description": "Its age and activity, and why it delays a reset, if it does."},
    }
    listed = {"session_id": ID, "processes": {"type": "array", "items": ref("Process")}}
    kept_from = {**COUNT, "description": "Offset of the first byte that is still stored."}
    log = {**dict.fromkeys(("offset", "next_offset", "total_bytes"), COUNT), "kept_from": kept_from, "text": TEXT}
    return {
        "Process": object_of(process),
        "ProcessList": object_of(listed),
        "AllProcesses": object_of({"processes": listed["processes"]}),
        "OneProcess": object_of({"process": ref("Process")}),
        "ProcessLog": object_of({"id": FILLED, **log}),
    }
