"""Answers about turns as types: chat completions, responses, runs, events and approvals."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

from msgspec import Meta

from hermes.adapters.http.schema import SessionIdText
from hermes.adapters.http.stream_token import TokenScope
from hermes.adapters.openai_api.openapi.answers import Count, PendingJson, TokensAndCost
from hermes.adapters.openai_api.runs.run_reader import RunStatus
from hermes.domain.turn.submission import Handling

ResponseStatus: TypeAlias = Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]


class ErrorOfTurn(TypedDict):
    code: str
    message: str


class HermesFields(TypedDict):
    """Our extension of OpenAI's objects."""

    session_id: SessionIdText
    turn_id: str
    notice: NotRequired[str]
    pending: NotRequired[PendingJson]


class CompletionMessage(TypedDict):
    role: Literal["assistant"]
    content: str | None
    refusal: None


class CompletionChoice(TypedDict):
    index: Literal[0]
    message: CompletionMessage
    finish_reason: str


class CompletionUsage(TypedDict):
    prompt_tokens: Count
    completion_tokens: Count
    total_tokens: Count


class CompletionJson(TypedDict):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: Annotated[list[CompletionChoice], Meta(min_length=1, max_length=1)]
    usage: CompletionUsage
    hermes: HermesFields


class CompletionChunk(TypedDict):
    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: Annotated[list[dict[str, Any]], Meta(max_length=1)]
    usage: NotRequired[CompletionUsage | None]
    hermes: NotRequired[dict[str, Any]]


class ResponseEvent(TypedDict):
    """One of OpenAI's `response.*` events, or one of ours."""

    type: str
    sequence_number: Count


class EventOfAll(TypedDict):
    session_id: NotRequired[str]
    platform: NotRequired[str]


class TokenJson(TypedDict):
    token: str
    scope: TokenScope
    expires_at: Count


class RunEvent(TypedDict):
    run_id: str
    session_id: str
    at: NotRequired[float]


class ResponseUsage(TypedDict):
    input_tokens: Count
    output_tokens: Count
    total_tokens: Count


class OutputItem(TypedDict):
    """A message, a call of a server tool (`mcp_call`) or a call of a client's tool (`function_call`)."""

    id: str
    type: Literal["message", "mcp_call", "function_call"]
    status: str


class ConversationName(TypedDict):
    id: SessionIdText


class ResponseJson(TypedDict):
    id: str
    object: Literal["response"]
    created_at: int
    status: ResponseStatus
    background: bool
    conversation: ConversationName | None
    error: ErrorOfTurn | None
    incomplete_details: dict[str, str] | None
    instructions: str | None
    model: str
    output: list[OutputItem]
    previous_response_id: str | None
    store: bool
    metadata: dict[str, str]
    usage: ResponseUsage | None
    text: dict[str, Any]
    reasoning: dict[str, Any]
    truncation: Literal["auto", "disabled"]
    hermes: HermesFields


class ResponseDeleted(TypedDict):
    id: str
    object: Literal["response"]
    deleted: Literal[True]


class InputItemList(TypedDict):
    object: Literal["list"]
    data: list[dict[str, Any]]
    first_id: str | None
    last_id: str | None
    has_more: bool


class RunJson(TypedDict):
    run_id: str
    object: Literal["run"]
    status: RunStatus
    session_id: SessionIdText
    turn_id: str
    created_at: float | None
    ended_at: float | None
    output: str | None
    usage: TokensAndCost
    error: ErrorOfTurn | None
    pending: PendingJson | None
    metadata: dict[str, str]
    handling: NotRequired[Handling]
    notice: NotRequired[str]


class RunList(TypedDict):
    object: Literal["list"]
    data: list[RunJson]
    has_more: bool
    next_cursor: str | None


class ApprovalJson(TypedDict):
    id: str
    kind: Literal["approval", "question"]
    call_id: str
    name: Annotated[str, Meta(description="Tool that asks.")]
    question: str
    choices: list[str]
    session_id: SessionIdText
    turn_id: str
    run_id: str
    asked_at: float
    title: str
    platform: str


class ApprovalList(TypedDict):
    approvals: list[ApprovalJson]


class ApprovalAnswered(TypedDict):
    id: str
    answered: Literal[True]
    session_id: SessionIdText
