"""Wire protocol of an endpoint: the request as bytes, and the answer assembled from streamed events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from hermes.ports.agent import ModelDone, ModelRequest


class StreamedAnswer(Protocol):
    over: bool  # only usage may still follow
    thought: str  # reasoning in the last event
    size: int  # characters of the answer and of its reasoning so far

    def add(self, data: bytes) -> str:
        """Add one event's data and return its text. Raises ModelError."""

    def done(self) -> ModelDone:
        """Return the end of the answer after the stream. Raises ModelError if it is incomplete."""


class Wire(Protocol):
    def path(self, model: str, /) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    def body(self, request: ModelRequest, model: str) -> bytes: ...
    def answer(self, model: str, *, secret: str) -> StreamedAnswer: ...
