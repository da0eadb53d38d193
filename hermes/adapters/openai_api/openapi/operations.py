"""All operations of the API in one table. A test compares it with the routes."""

from __future__ import annotations

from typing import Any

from hermes.adapters.http.parameter import (
    CANCEL_HEADER,
    EVENTS_HEADER,
    IDEMPOTENCY_HEADER,
    KEY_HEADER,
    LAST_EVENT_HEADER,
    SESSION_HEADER,
)
from hermes.adapters.openai_api.chat_request import ChatRequest
from hermes.adapters.openai_api.command_api import CommandRequest
from hermes.adapters.openai_api.events.event_api import EventsQuery
from hermes.adapters.openai_api.events.token_api import TokenRequest
from hermes.adapters.openai_api.openapi import answers, stream_text, turn_answers
from hermes.adapters.openai_api.openapi.operation import ApiRoute
from hermes.adapters.openai_api.openapi.surface_operations import SURFACE
from hermes.adapters.openai_api.process_api import LogQuery
from hermes.adapters.openai_api.responses.response_reader import InputItemsQuery, ResponseQuery
from hermes.adapters.openai_api.runs.approval_api import ApprovalAnswer
from hermes.adapters.openai_api.runs.run_api import ApprovalRequest, RunListQuery
from hermes.adapters.openai_api.session_api import MessagesQuery, SessionListQuery, SessionQuery
from hermes.adapters.openai_api.session_wish_api import (
    AnswerRequest,
    CompressRequest,
    ForkRequest,
    SteerRequest,
    StopBody,
    UndoRequest,
)
from hermes.adapters.openai_api.sessions.session_edit_api import SessionChange, SessionRequest
from hermes.adapters.openai_api.turns.turn_request import ResponseRequest, RunRequest

_TURN = (SESSION_HEADER, KEY_HEADER, IDEMPOTENCY_HEADER)


def _wish(name: str, what: str, summary: str, body: Any, **fields: Any) -> ApiRoute:
    """Build an operation on a session whose body can be left out."""
    return ApiRoute(
        route=f"POST /api/sessions/{{id}}/{name}",
        id=what,
        summary=summary,
        answer=answers.SessionAfter,
        body=body,
        body_needed=False,
        example={},
        **fields,
    )


_TURNS = (
    ApiRoute(
        route="POST /v1/chat/completions",
        id="createChatCompletion",
        summary="Send a message and get its answer. With a session id, only the last message is used",
        answer=turn_answers.CompletionJson,
        body=ChatRequest,
        example={"model": "hermes", "messages": [{"role": "user", "content": "Hello"}]},
        headers=(*_TURN, CANCEL_HEADER),
        events=turn_answers.CompletionChunk,
        stream_text=stream_text.CHAT,
    ),
    ApiRoute(
        route="POST /v1/responses",
        id="createResponse",
        summary="Send a message and get its answer as a Response; optionally after a previous one",
        answer=turn_answers.ResponseJson,
        body=ResponseRequest,
        example={"model": "hermes", "input": "What is in this folder?"},
        headers=(*_TURN, CANCEL_HEADER, EVENTS_HEADER),
        events=turn_answers.ResponseEvent,
        stream_text=stream_text.RESPONSE,
    ),
    ApiRoute(
        route="GET /v1/responses/{id}",
        id="getResponse",
        summary="Get a stored response, or stream it again, from its beginning or after an event",
        answer=turn_answers.ResponseJson,
        query=ResponseQuery,
        events=turn_answers.ResponseEvent,
        stream_text=stream_text.RESPONSE,
    ),
    ApiRoute(
        route="POST /v1/responses/{id}/cancel",
        id="cancelResponse",
        summary="Stop a response with its tools and questions",
        answer=turn_answers.ResponseJson,
    ),
    ApiRoute(
        route="GET /v1/responses/{id}/input_items",
        id="listInputItems",
        summary="List the new messages of the request",
        answer=turn_answers.InputItemList,
        query=InputItemsQuery,
    ),
    ApiRoute(
        route="DELETE /v1/responses/{id}",
        id="deleteResponse",
        summary="Delete a response id",
        answer=turn_answers.ResponseDeleted,
    ),
    ApiRoute(
        route="POST /v1/runs",
        id="createRun",
        summary="Start a run",
        answer=turn_answers.RunJson,
        status=202,
        body=RunRequest,
        example={"input": "Tidy up the downloads folder.", "session_id": "my-chat"},
        headers=_TURN,
    ),
    ApiRoute(
        route="GET /v1/runs",
        id="listRuns",
        summary="List runs, newest first. A page may be short although `next_cursor` is set",
        answer=turn_answers.RunList,
        query=RunListQuery,
    ),
    ApiRoute(
        route="GET /api/events",
        id="followEvents",
        summary="Stream the events of all sessions, from now on or after one",
        query=EventsQuery,
        headers=(LAST_EVENT_HEADER,),
        events=turn_answers.EventOfAll,
        stream_text=stream_text.EVENTS,
    ),
    ApiRoute(
        route="POST /api/tokens",
        id="createToken",
        summary="Create a short-lived token for a query string",
        answer=turn_answers.TokenJson,
        status=201,
        body=TokenRequest,
        body_needed=False,
        example={"scope": "events"},
    ),
    ApiRoute(
        route="GET /api/approvals",
        id="listApprovals",
        summary="List open approvals and questions of all sessions",
        answer=turn_answers.ApprovalList,
    ),
    ApiRoute(
        route="GET /api/approvals/{id}",
        id="getApproval",
        summary="Get an open approval or question",
        answer=turn_answers.ApprovalJson,
    ),
    ApiRoute(
        route="POST /api/approvals/{id}",
        id="answerApproval",
        summary="Approve, deny or answer by id",
        answer=turn_answers.ApprovalAnswered,
        body=ApprovalAnswer,
        example={"choice": "once"},
    ),
    ApiRoute(route="GET /v1/runs/{id}", id="getRun", summary="Get a run", answer=turn_answers.RunJson),
    ApiRoute(
        route="GET /v1/runs/{id}/events",
        id="followRun",
        summary="Stream the events of a run, from the beginning or after one",
        headers=(LAST_EVENT_HEADER,),
        events=turn_answers.RunEvent,
        stream_text=stream_text.RUN,
        also={204: None},
    ),
    ApiRoute(
        route="POST /v1/runs/{id}/approval",
        id="approveRun",
        summary="Approve or deny the tool call that waits",
        answer=turn_answers.RunJson,
        body=ApprovalRequest,
        example={"choice": "once"},
    ),
    ApiRoute(
        route="POST /v1/runs/{id}/answer",
        id="answerRun",
        summary="Answer the question of a run",
        answer=turn_answers.RunJson,
        body=AnswerRequest,
        example={"answer": "the second one"},
    ),
    ApiRoute(
        route="POST /v1/runs/{id}/stop",
        id="stopRun",
        summary="Stop a run with its tools and questions",
        answer=turn_answers.RunJson,
    ),
)
_SESSIONS = (
    ApiRoute(
        route="GET /api/sessions",
        id="listSessions",
        summary="List sessions, last active first",
        answer=answers.SessionList,
        query=SessionListQuery,
        errors=(404,),  # `after` names a session that does not exist
    ),
    ApiRoute(
        route="POST /api/sessions",
        id="createSession",
        summary="Create an empty session",
        answer=answers.SessionChanged,
        status=201,
        body=SessionRequest,
        body_needed=False,
        example={"title": "Groceries"},
    ),
    ApiRoute(
        route="PATCH /api/sessions/{id}",
        id="changeSession",
        summary="Change title, model and preferences",
        answer=answers.SessionChanged,
        body=SessionChange,
        example={"title": "Groceries"},
    ),
    ApiRoute(
        route="GET /api/sessions/{id}",
        id="getSession",
        summary="Get the live end of a session's lineage, or with `exact` this session",
        answer=answers.SessionViewJson,
        query=SessionQuery,
    ),
    ApiRoute(
        route="GET /api/sessions/{id}/messages",
        id="listMessages",
        summary="List messages after or before a position, oldest first; without one, the last page",
        answer=answers.TranscriptJson,
        query=MessagesQuery,
    ),
    ApiRoute(
        route="DELETE /api/sessions/{id}",
        id="deleteSession",
        summary="Erase a session and its messages",
        answer=answers.SessionDeleted,
    ),
    ApiRoute(
        route="POST /api/sessions/{id}/steer",
        id="steerSession",
        summary="Send a message to the running turn; the model sees it after its next tool calls",
        answer=answers.SteeredJson,
        status=202,
        body=SteerRequest,
        example={"text": "Only the files under src, please."},
        headers=(IDEMPOTENCY_HEADER,),
    ),
    _wish("stop", "stopSession", "Stop the running turn with its tools and questions", StopBody),
    _wish("fork", "forkSession", "Create a session as a copy of this one", ForkRequest, status=201),
    _wish("compress", "compressSession", "Continue from a summary, in a new session", CompressRequest, status=202),
    _wish("undo", "undoTurns", "Undo the last turns, also across a compression", UndoRequest),
    ApiRoute(
        route="POST /api/sessions/{id}/answer",
        id="answerSession",
        summary="Answer the question of its turn",
        answer=answers.SessionAfter,
        body=AnswerRequest,
        example={"answer": "once"},
    ),
    ApiRoute(route="GET /api/commands", id="listCommands", summary="List slash commands", answer=answers.CommandList),
    *(
        ApiRoute(
            route=f"POST {path}",
            id=name,
            summary=f"Run a slash command {where}",
            answer=answers.CommandReplyJson,
            body=CommandRequest,
            example={"text": "/help"},
            headers=(IDEMPOTENCY_HEADER,),
        )
        for path, name, where in (
            ("/api/commands", "runCommandAnywhere", "without a session"),
            ("/api/sessions/{id}/commands", "runCommand", "in a session"),
        )
    ),
)
_PROCESSES = (
    ApiRoute(
        route="GET /api/sessions/{id}/processes",
        id="listProcesses",
        summary="List running and recently ended processes of a session, oldest first",
        answer=answers.ProcessPageJson,
    ),
    ApiRoute(
        route="GET /api/sessions/{id}/agents",
        id="listAgents",
        summary="List the subagents that work for a session, and those below them, in the order of their start",
        answer=answers.AgentListJson,
    ),
    ApiRoute(
        route="GET /api/sessions/{id}/context",
        id="getContext",
        summary="Show what fills the context window of a session, by part",
        answer=answers.ContextJson,
    ),
    ApiRoute(
        route="GET /api/processes",
        id="listAllProcesses",
        summary="List processes of all sessions",
        answer=answers.AllProcesses,
    ),
    ApiRoute(route="GET /api/processes/{id}", id="getProcess", summary="Get a process", answer=answers.OneProcess),
    ApiRoute(
        route="GET /api/processes/{id}/log",
        id="readProcess",
        summary="Read output from a byte offset; without one, its end",
        answer=answers.ProcessLog,
        query=LogQuery,
    ),
    ApiRoute(
        route="POST /api/processes/{id}/kill",
        id="killProcess",
        summary="Kill a process and everything it started",
        answer=answers.OneProcess,
    ),
)
_DAEMON = (
    ApiRoute(route="GET /v1/models", id="listModels", summary="List model names", answer=answers.ModelList),
    ApiRoute(route="GET /v1/models/{id}", id="getModel", summary="Get a model", answer=answers.ModelJson),
    ApiRoute(
        route="GET /health", id="getHealth", summary="Liveness of the daemon", answer=answers.HealthJson, open=True
    ),
    ApiRoute(
        route="GET /health/ready",
        id="getReadiness",
        summary="Readiness of the daemon",
        answer=answers.ReadinessJson,
        also={503: answers.ReadinessJson},
        open=True,
    ),
    ApiRoute(
        route="POST /hooks/{id}",
        id="receiveWebhook",
        summary="Accept an event for a configured webhook. Its signature takes the place of the key",
        answer=answers.WebhookJson,
        status=202,
        body=dict[str, Any],
        also={200: answers.WebhookJson},
        errors=(401, 404, 429),
        open=True,
    ),
    ApiRoute(
        route="GET /openapi.json",
        id="getDescription",
        summary="This document",
        answer=dict[str, Any],
        open=True,
    ),
    ApiRoute(route="GET /", id="getWelcomePage", summary="Page for browsers", text_type="text/html", open=True),
    ApiRoute(
        route="GET /metrics", id="getMetrics", summary="Figures for Prometheus, for the owner", text_type="text/plain"
    ),
)

OPERATIONS: tuple[ApiRoute, ...] = (*_TURNS, *_SESSIONS, *SURFACE, *_PROCESSES, *_DAEMON)
