"""The agent: who answers, what it is asked to do, and what it reports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

from hermes.domain.session.jobs import (
    ModelJob,
    ModelReport,
    RetryReport,
    SummaryJob,
    SummaryReport,
    ToolJob,
    ToolReport,
)
from hermes.domain.types import (
    EncodedMessage,
    SessionId,
    Usage,
)
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    session: SessionId
    messages: Sequence[EncodedMessage]
    options: bytes = b"{}"  # a JSON object of sampling options, sent on as they are
    tools: bytes = b""  # a JSON array, or nothing
    model: str = ""  # by name, where the endpoint has several; empty: as configured
    reasoning: str = ""  # how much effort, in the endpoint's words

    def for_another(self) -> ModelRequest:
        """The same, to be asked of another model."""
        return replace(self, model="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelText:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDone:
    """The model said it had finished. A stream that ends without this is a failure."""

    finish_reason: str
    model: str
    usage: Usage = Usage()
    tool_calls: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelQueued:
    """The model answers others first. Sent by models that answer one at a time."""

    ahead: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStarted:
    """The wait is over: the model works on this request now."""


ModelChunk: TypeAlias = ModelText | ModelQueued | ModelStarted | ModelDone


class Model(Protocol):
    @property
    def name(self) -> str: ...
    def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Raises ModelError; its failure's kind says whether another try makes sense."""

    async def close(self) -> None: ...


class Work(Protocol):
    __slots__ = ()  # one for each model or tool call

    @property
    def written(self) -> str:
        """As much of an answer as there is by now."""

    def cancel(self) -> None:
        """End it. No report follows."""


class Agent(Protocol):
    """Does a session's work as tasks that it holds itself. Reports come back on the loop."""

    def think(self, job: ModelJob, report: Callable[[ModelReport | RetryReport], None]) -> Work: ...
    def act(self, job: ToolJob, report: Callable[[ToolReport], None]) -> Work: ...
    def summarise(self, job: SummaryJob, report: Callable[[SummaryReport], None]) -> Work: ...
