"""Values of the API as typed objects. `fields` keeps everything that the server sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")
JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatAnswer:
    """Answer of a turn. `pending`: the turn waits for a person, and `text` is the question."""

    text: str
    session_id: str
    turn_id: str
    finish_reason: str
    pending: JsonObject | None
    fields: JsonObject = field(repr=False)

    @classmethod
    def read(cls, body: JsonObject) -> ChatAnswer:
        choice, hermes = body["choices"][0], body["hermes"]
        return cls(
            text=choice["message"]["content"] or "",
            session_id=hermes["session_id"],
            turn_id=hermes["turn_id"],
            finish_reason=choice["finish_reason"],
            pending=hermes.get("pending"),
            fields=body,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatPart:
    """Part of a streamed answer: text, or an event such as `hermes.tool.started` with its fields."""

    text: str = ""
    event: str = ""
    session_id: str = ""
    fields: JsonObject = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, event: str, body: JsonObject) -> ChatPart:
        delta = body["choices"][0]["delta"] if body.get("choices") else {}
        hermes = body.get("hermes", {})
        return cls(
            text=delta.get("content") or "",
            event="" if event == "message" else event,
            session_id=hermes.get("session_id", ""),
            fields=hermes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    id: str
    status: str
    session_id: str
    turn_id: str
    output: str | None
    error: JsonObject | None
    pending: JsonObject | None
    fields: JsonObject = field(repr=False)

    @property
    def is_over(self) -> bool:
        return self.status in ("completed", "failed", "cancelled")

    @classmethod
    def read(cls, body: JsonObject) -> RunState:
        names = ("status", "session_id", "turn_id", "output", "error", "pending")
        return cls(id=body["run_id"], fields=body, **{name: body[name] for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEvent:
    """Event of a run or of all sessions. `id` is empty for live events, which cannot be continued from."""

    id: str
    name: str
    session_id: str
    fields: JsonObject = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    id: str
    title: str
    phase: str
    platform: str
    created_at: float
    active_at: float
    messages: int
    fields: JsonObject = field(repr=False)

    @classmethod
    def read(cls, body: JsonObject) -> SessionInfo:
        names = ("id", "title", "phase", "platform", "created_at", "active_at", "messages")
        return cls(fields=body, **{name: body[name] for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptLine:
    seq: int
    at: float
    role: str
    content: Any
    fields: JsonObject = field(repr=False)

    @classmethod
    def read(cls, body: JsonObject) -> TranscriptLine:
        return cls(fields=body, **{name: body[name] for name in ("seq", "at", "role", "content")})


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """Approval or question that a turn waits for."""

    id: str
    kind: str  # approval or question
    question: str
    choices: tuple[str, ...]
    session_id: str
    run_id: str
    fields: JsonObject = field(repr=False)

    @classmethod
    def read(cls, body: JsonObject) -> OpenQuestion:
        names = ("id", "kind", "question", "session_id", "run_id")
        return cls(choices=tuple(body["choices"]), fields=body, **{name: body[name] for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedFile:
    id: str
    name: str
    size_bytes: int
    created_at: int

    @classmethod
    def read(cls, body: JsonObject) -> UploadedFile:
        return cls(id=body["id"], name=body["filename"], size_bytes=body["bytes"], created_at=body["created_at"])


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMessage:
    """Result of a search: one message."""

    session_id: str
    seq: int
    at: float
    role: str
    snippet: str
    title: str

    @classmethod
    def read(cls, body: JsonObject) -> FoundMessage:
        return cls(**{name: body[name] for name in ("session_id", "seq", "at", "role", "snippet", "title")})


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    items: tuple[T, ...]
    cursor: str | None  # of the next page; None: this is the last one
