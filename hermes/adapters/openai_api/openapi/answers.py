"""Answers of the API as types, from which the OpenAPI schemas are generated.

`Json` at the end of a name is left out of the schema's name.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

from msgspec import Meta

from hermes.adapters.http.schema import SessionIdText
from hermes.adapters.http.stream_token import TokenScope
from hermes.adapters.openai_api.runs.run_reader import RunStatus
from hermes.domain.session.state import Phase
from hermes.domain.submission import Handling

Count: TypeAlias = Annotated[int, Meta(ge=0)]
ResponseStatus: TypeAlias = Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]


class ErrorFields(TypedDict):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorJson(TypedDict):
    error: ErrorFields


# ---------------------------------------------------------------- daemon


class HealthJson(TypedDict):
    status: Literal["ok"]
    version: str


class ReadinessJson(TypedDict):
    status: Literal["ready", "not ready"]
    reason: NotRequired[Literal["stopping", "unavailable"]]


class ModelJson(TypedDict):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(TypedDict):
    object: Literal["list"]
    data: list[ModelJson]


# ---------------------------------------------------------------- sessions


class TokensAndCost(TypedDict):
    prompt_tokens: Count
    completion_tokens: Count
    cached_tokens: Count
    cost_usd: float


class LastFailure(TypedDict):
    kind: str
    message: str
    retry_after_s: float | None
    address: NotRequired[str]
    cause: NotRequired[str]
    status: NotRequired[Count]


class SessionJson(TypedDict):
    id: SessionIdText
    key: str
    title: str
    phase: Phase
    reason: str
    since: float
    created_at: float
    active_at: float
    platform: str
    parent: SessionIdText | None
    successor: SessionIdText | None
    running_turn: str | None
    role: str | None
    queued: Count
    compressing: bool
    interruptions: Count
    messages: Count
    turns: Count
    usage: TokensAndCost
    last_failure: LastFailure | None


class SessionAfter(TypedDict):
    """The session after a request."""

    session_id: SessionIdText
    session: SessionJson


class Pending(TypedDict):
    """Question that a turn waits for."""

    kind: Literal["approval", "question"]
    call_id: str
    question: str
    choices: list[str]
    session_id: SessionIdText
    turn_id: str


class WaitingTurn(TypedDict):
    turn_id: str
    accepted_at: float
    steer: bool


class PreferencesJson(TypedDict):
    title: str
    model: str
    personality: str
    reasoning: str
    busy: str
    yolo: bool


class SessionViewJson(TypedDict):
    session: SessionJson
    why: str
    waits_for: str
    lineage: list[SessionIdText]
    live: bool
    mailbox: Count
    queue: list[WaitingTurn]
    preferences: PreferencesJson
    pending: Pending | None


class SessionPreview(TypedDict):
    """Beginnings of the first message of a person, and of the last message."""

    first: str
    last: str


class SessionList(TypedDict):
    sessions: list[SessionJson]
    has_more: bool
    next_cursor: str | None
    total: NotRequired[Annotated[int, Meta(ge=0, le=10_000, description="With `total`: at most 10,000.")]]
    previews: NotRequired[Annotated[dict[str, SessionPreview], Meta(description="With `preview`, by session id.")]]


class SessionChanged(TypedDict):
    session_id: SessionIdText
    session: SessionJson
    preferences: PreferencesJson


class TranscriptMessage(TypedDict):
    seq: Count
    at: float
    turn: str
    role: str
    note: bool
    content: Any
    by: NotRequired[str]
    answered: NotRequired[str]


class TranscriptJson(TypedDict):
    session_id: SessionIdText
    messages: list[TranscriptMessage]
    has_more: bool


class SessionDeleted(TypedDict):
    id: SessionIdText
    deleted: Literal[True]


class SteeredJson(TypedDict):
    session_id: SessionIdText
    turn_id: str
    handling: Handling


# ---------------------------------------------------------------- commands


class CommandJson(TypedDict):
    name: str
    aliases: list[str]
    usage: str
    help: str
    group: str
    choices: list[str]


class CommandList(TypedDict):
    commands: list[CommandJson]


class CommandReplyJson(TypedDict):
    ok: Annotated[bool, Meta(description="False if nothing was done; the text tells why.")]
    text: str
    session_id: Annotated[SessionIdText | None, Meta(description="Current session of the conversation, if any.")]
    turn_id: str | None
    rows: Annotated[list[list[str]], Meta(description="The text as a table, if it is one; headings first.")]
    choices: Annotated[list[str], Meta(description="Arguments to repeat the command with.")]


# ---------------------------------------------------------------- processes


class ProcessJson(TypedDict):
    id: str
    session_id: Annotated[SessionIdText, Meta(description="The session that started it.")]
    command: str
    pid: Count
    running: bool
    started_at: float
    age_s: float
    heartbeat_at: float
    active_at: float
    cpu_s: float
    memory_bytes: Count
    output_bytes: Count
    ports: Annotated[list[Count], Meta(description="TCP ports that it listens on.")]
    ended_at: float | None
    exit_code: int | None
    signal: int | None
    reason: Literal["", "exited", "killed", "memory", "processes", "output", "lost"]
    detail: str
    blocks_reset: Annotated[bool, Meta(description="It delays a reset of the conversation.")]
    explanation: Annotated[str, Meta(description="Age and activity, and why it delays a reset, if it does.")]


class ProcessPage(TypedDict):
    session_id: SessionIdText
    processes: list[ProcessJson]


class AllProcesses(TypedDict):
    processes: list[ProcessJson]


class OneProcess(TypedDict):
    process: ProcessJson


class ProcessLog(TypedDict):
    id: str
    offset: Count
    next_offset: Count
    total_bytes: Count
    kept_from: Annotated[Count, Meta(description="Offset of the first byte that is still stored.")]
    text: str


# ---------------------------------------------------------------- turns


class ErrorOfTurn(TypedDict):
    code: str
    message: str


class HermesFields(TypedDict):
    """Our extension of OpenAI's objects."""

    session_id: SessionIdText
    turn_id: str
    notice: NotRequired[str]
    pending: NotRequired[Pending]


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
    pending: Pending | None
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
