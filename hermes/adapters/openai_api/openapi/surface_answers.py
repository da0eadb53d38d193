"""Answers of files, search and the routes of hermes-agent, as types for the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

from hermes.adapters.http.schema import SessionIdText
from hermes.adapters.openai_api.file_api import Purpose
from hermes.adapters.openai_api.openapi.answers import Count, PendingJson


class FileJson(TypedDict):
    id: str
    object: Literal["file"]
    bytes: Count
    created_at: Count
    expires_at: Count
    filename: str
    purpose: str
    status: Literal["processed"]


class FileList(TypedDict):
    object: Literal["list"]
    data: list[FileJson]
    has_more: bool
    first_id: str | None
    last_id: str | None


class FileDeleted(TypedDict):
    id: str
    object: Literal["file"]
    deleted: Literal[True]


class FileUpload(TypedDict):
    """Form of an upload."""

    file: Annotated[str, Meta(extra_json_schema={"format": "binary"})]
    purpose: NotRequired[Purpose]


class TranscriptionForm(TypedDict):
    """Form of a request for a transcription. All parts are passed to the provider."""

    file: Annotated[str, Meta(extra_json_schema={"format": "binary"})]


class TextChoice(TypedDict):
    index: Literal[0]
    text: str
    logprobs: None
    finish_reason: str | None


class TextCompletionJson(TypedDict):
    id: str
    object: Literal["text_completion"]
    created: Count
    model: str
    choices: list[TextChoice]
    usage: NotRequired[dict[str, int]]
    hermes: dict[str, Any]


class SessionChatAnswer(TypedDict):
    session_id: SessionIdText
    turn_id: str
    run_id: str
    message: dict[str, str]
    finish_reason: NotRequired[str]
    usage: NotRequired[dict[str, Any]]
    pending: NotRequired[PendingJson]


class SessionChatEvent(TypedDict):
    seq: Count
    ts: float
    session_id: SessionIdText
    turn_id: str
    run_id: str


class AgentHealth(TypedDict):
    status: Literal["ok"]
    platform: str
    version: str


class ToolsetJson(TypedDict):
    name: str
    enabled: bool
    tools: list[str]


class ToolsetList(TypedDict):
    object: Literal["list"]
    data: list[ToolsetJson]


class SearchHit(TypedDict):
    session_id: SessionIdText
    seq: Count
    at: float
    role: str
    snippet: str
    person: Annotated[str, Meta(description="PLATFORM:USER, or owner; empty: unknown.")]
    title: str
    platform: str


class IndexProgressJson(TypedDict):
    indexed: Count
    total: Count
    building: bool


class SearchResult(TypedDict):
    query: str
    hits: list[SearchHit]
    index: Annotated[IndexProgressJson | None, Meta(description="Progress of the index, if it is being built.")]
