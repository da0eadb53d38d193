"""Model providers as values: where an endpoint is, how it is called, and facts about its models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

from hermes.domain.turn.usage import Price
from hermes.domain.values import dataclass

_RELEASE = re.compile(r"-(latest|20\d{6}|20\d\d-\d\d-\d\d)$")  # suffix of a dated name


class WireProtocol(StrEnum):
    CHAT = "chat"  # OpenAI chat completions
    RESPONSES = "responses"  # OpenAI Responses
    MESSAGES = "messages"  # Anthropic Messages


class EffortStyle(StrEnum):
    """Form in which an endpoint takes the reasoning effort."""

    NONE = ""  # it takes none
    FIELD = "reasoning_effort"
    OBJECT = "reasoning"  # {"reasoning": {"effort": …}}
    SWITCH = "thinking"  # {"thinking": {"type": "enabled" or "disabled"}}
    SWITCH_AND_FIELD = "thinking, reasoning_effort"


class ReasoningReplay(StrEnum):
    """Field of an assistant message in which an endpoint expects its earlier reasoning."""

    NONE = ""
    TEXT = "reasoning_content"
    DETAILS = "reasoning_details"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Facts about a model. Zero and None mean unknown."""

    context_window: int = 0
    max_output: int = 0
    price: Price | None = None
    vision: bool | None = None
    reasoning: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    name: str
    title: str
    base_url: str = ""  # empty: the configuration has to name it
    key_variable: str = ""  # empty: it needs no key
    protocol: WireProtocol = WireProtocol.CHAT
    key_header: str = ""  # empty: Authorization with a bearer token
    versioned: bool = False  # it also has a dated API, chosen by a version
    effort: EffortStyle = EffortStyle.NONE
    efforts: tuple[tuple[str, str], ...] = ()  # effort levels that it names differently
    replay: ReasoningReplay = ReasoningReplay.NONE
    models: tuple[tuple[str, ModelFacts], ...] = ()

    def facts(self, model: str) -> ModelFacts:
        """Return the known facts about a model, also about its dated releases."""
        known = dict(self.models)
        return known.get(model) or known.get(_RELEASE.sub("", model)) or ModelFacts()

    @property
    def is_local(self) -> bool:
        """Return whether it is a server on this machine."""
        return self.base_url.startswith("http://127.0.0.1")

    def effort_level(self, level: str) -> str:
        """Return the provider's name of an effort level."""
        return dict(self.efforts).get(level, level)


def split_choice(text: str, providers: Mapping[str, Provider]) -> tuple[str, str]:
    """Split `[PROVIDER:]MODEL`. Model names can contain colons, so only a known provider counts."""
    provider, colon, model = text.partition(":")
    return (provider, model) if colon and model and provider in providers else ("", text)
