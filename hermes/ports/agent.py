"""Agent port: model requests, streamed model output, and the jobs that an agent runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from hermes.domain.ids import SessionId, TurnId
from hermes.domain.session.jobs import (
    ModelJob,
    ModelReport,
    RetryReport,
    SummaryJob,
    SummaryReport,
    ToolJob,
    ToolReport,
)
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.tool_call import Call, CallOutcome
from hermes.domain.turn.usage import Usage
from hermes.domain.values import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    session: SessionId
    messages: Sequence[EncodedMessage]
    size_bytes: int = 0  # of the messages; 0: not known
    options: bytes = b"{}"  # JSON object of sampling options, passed on unchanged
    tools: bytes = b""  # JSON array, or empty
    model: str = ""  # model name at an endpoint that serves several; the configured one if empty
    reasoning: str = ""  # reasoning effort: none, minimal, low, medium, high or xhigh

    def for_another(self) -> ModelRequest:
        """Return this request for another model: without the model name."""
        return replace(self, model="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelText:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReasoning:
    """Reasoning, which is not part of the answer."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDone:
    """The model has finished. A stream that ends without this has failed."""

    finish_reason: str
    model: str
    usage: Usage = Usage()
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    reasoning: tuple[Mapping[str, Any], ...] = ()  # items that the provider wants back with this message


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelQueued:
    """The request waits for others. Sent by models that serve one request at a time."""

    ahead: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStarted:
    """The model starts to work on this request."""


ModelChunk: TypeAlias = ModelText | ModelReasoning | ModelQueued | ModelStarted | ModelDone


class Model(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def provider(self) -> str:
        """Name of the provider."""

    @property
    def endpoint(self) -> str:
        """Address for people; models at one address fail together. Empty: the model has none."""

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Stream the answer. Raises ModelError, whose failure kind tells if a retry can help."""

    async def close(self) -> None: ...


class Work(Protocol):
    __slots__ = ()  # one for each model or tool call

    @property
    def written(self) -> str:
        """Text of the answer so far."""

    def cancel(self) -> None:
        """Cancel the work. No report follows."""


class Agent(Protocol):
    """Runs the jobs of sessions as its own tasks. Reports arrive on the event loop."""

    def think(self, job: ModelJob, report: Callable[[ModelReport | RetryReport], None]) -> Work: ...
    def act(self, job: ToolJob, report: Callable[[ToolReport], None]) -> Work: ...
    def summarise(self, job: SummaryJob, report: Callable[[SummaryReport], None]) -> Work: ...


class InnerCalls(Protocol):
    """Records of the tool calls that a script makes, like those of the model. Raises HermesErrors only."""

    async def begin(
        self,
        session: SessionId,
        turn: TurnId,
        call: Call,
        arguments: str,
        *,
        platform: str,
        waits: Callable[[bool], None],
    ) -> str:
        """Record the call and wait until it may run. Return why it may not; empty if it may.

        `waits` is called when the wait for a person begins and ends.
        """

    async def end(
        self,
        session: SessionId,
        turn: TurnId,
        call: Call,
        arguments: str,
        *,
        platform: str,
        text: str,
        outcome: CallOutcome,
        took_s: float,
    ) -> str:
        """Record the outcome of a call that has run. Return its text, with what hooks add."""
