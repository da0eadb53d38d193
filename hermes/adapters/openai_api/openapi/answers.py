"""Answers of the API as types, from which the OpenAPI schemas are generated.

`Json` at the end of a name is left out of the schema's name.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

from msgspec import Meta

from hermes.adapters.http.schema import SessionIdText
from hermes.domain.session.state import Phase
from hermes.domain.turn.submission import Handling

Count: TypeAlias = Annotated[int, Meta(ge=0)]


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


class WebhookJson(TypedDict):
    status: Literal["accepted", "duplicate", "ignored"]
    delivery: str
    event: str
    session: NotRequired[str]
    missing: NotRequired[list[str]]


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


class ChildJson(TypedDict):
    """Origin of a child session."""

    purpose: str
    parent: SessionIdText | None
    turn_id: str | None


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
    context_tokens: Count
    last_failure: LastFailure | None
    child: ChildJson | None


class SessionAfter(TypedDict):
    """The session after a request."""

    session_id: SessionIdText
    session: SessionJson


class PendingJson(TypedDict):
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
    pending: PendingJson | None


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


class ProcessPageJson(TypedDict):
    session_id: SessionIdText
    processes: list[ProcessJson]


class AgentJson(TypedDict):
    id: Annotated[SessionIdText, Meta(description="Its session. It does not exist while `phase` is null.")]
    parent: SessionIdText | None
    purpose: Literal["review", "delegate", "background"]
    task: str
    phase: Annotated[str | None, Meta(description="State of its session; null while it waits for a place.")]
    reason: str
    since: float | None
    tokens: Count
    doing: Annotated[list[str], Meta(description="Summaries of the tool calls that run.")]


class AgentListJson(TypedDict):
    session_id: SessionIdText
    agents: list[AgentJson]


class ContextPartJson(TypedDict):
    part: Annotated[str, Meta(description="identity, rules, guidance, skills, memory, tools, people, answers, …")]
    tokens: Annotated[Count, Meta(description="An estimate.")]
    items: Annotated[Count, Meta(description="Number of messages or tools in this part.")]


class ContextJson(TypedDict):
    session_id: SessionIdText
    window: Annotated[Count, Meta(description="Size of the model's context window; 0: unknown.")]
    counted: Annotated[Count, Meta(description="Tokens of the last request, as the provider counted them.")]
    estimated: Annotated[Count, Meta(description="Sum of the parts.")]
    parts: list[ContextPartJson]


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
