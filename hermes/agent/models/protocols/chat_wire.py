"""Chat completions: the protocol of OpenAI and of most other endpoints, with their differences as data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from hermes.agent.models.protocols.completion import StreamedCompletion, request_body
from hermes.agent.models.protocols.wire import StreamedAnswer, Wire
from hermes.domain.provider import EffortStyle, Provider, ReasoningReplay
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.reasoning import Reasoning, reasoning_of, without_reasoning
from hermes.ports.agent import ModelRequest

NO_REASONING = "none"
_MAX_REMEMBERED = 100


class ChatWire(Wire):
    def __init__(self, provider: Provider, *, deployments: bool = False) -> None:
        """With `deployments`, the path names the model, as in the dated API of Azure OpenAI."""
        self._provider = provider
        self._deployments = deployments
        self._encoded: dict[tuple[str, str], tuple[bytes, ...]] = {}  # settings by model and effort

    def path(self, model: str) -> str:
        return f"/deployments/{quote(model, safe='')}/chat/completions" if self._deployments else "/chat/completions"

    @property
    def headers(self) -> Mapping[str, str]:
        return {}

    def body(self, request: ModelRequest, model: str) -> bytes:
        settings = self._settings(model, request.reasoning)
        return request_body(request, *settings, replayed=lambda message: self._replayed(message, model))

    def _settings(self, model: str, effort: str) -> tuple[bytes, ...]:
        known = self._encoded.get((model, effort))
        if known is None:
            fields = {"model": model, **effort_fields(self._provider, effort)}
            known = tuple(f"{json.dumps(name)}:{json.dumps(value)}".encode() for name, value in fields.items())
            if len(self._encoded) >= _MAX_REMEMBERED:
                self._encoded.clear()
            self._encoded[model, effort] = known
        return known

    def answer(self, model: str, *, secret: str) -> StreamedAnswer:
        return StreamedCompletion(model=model, secret=secret)

    def _replayed(self, message: EncodedMessage, model: str) -> EncodedMessage:
        reasoning = reasoning_of(message)
        bare = without_reasoning(message)
        if reasoning.provider != self._provider.name or reasoning.model != model:
            return bare
        fields = _replay_fields(reasoning, self._provider.replay)
        if not fields:
            return bare
        added = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
        return EncodedMessage(bare[:-1] + b"," + added[1:])


def effort_fields(provider: Provider, level: str) -> dict[str, Any]:
    """Return the fields that set the reasoning effort at this provider."""
    if not level:
        return {}
    named = provider.effort_level(level)
    switch = {"thinking": {"type": "disabled" if level == NO_REASONING else "enabled"}}
    match provider.effort:
        case EffortStyle.NONE:
            return {}
        case EffortStyle.FIELD:
            return {"reasoning_effort": named}
        case EffortStyle.OBJECT:
            return {"reasoning": {"enabled": False} if level == NO_REASONING else {"effort": named}}
        case EffortStyle.SWITCH:
            return switch
        case EffortStyle.SWITCH_AND_FIELD:
            return switch if level == NO_REASONING else {**switch, "reasoning_effort": named}


def _replay_fields(reasoning: Reasoning, replay: ReasoningReplay) -> dict[str, Any]:
    match replay:
        case ReasoningReplay.NONE:
            return {}
        case ReasoningReplay.TEXT:
            return {"reasoning_content": reasoning.text} if reasoning.text else {}
        case ReasoningReplay.DETAILS:
            return {"reasoning_details": list(reasoning.items)} if reasoning.items else {}
