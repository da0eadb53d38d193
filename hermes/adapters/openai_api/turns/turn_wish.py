"""Types of fields that several routes share, and what happens to options and fields without effect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from hermes.adapters.http.field import contradict
from hermes.adapters.http.schema import Fields, SessionIdText, Text

MAX_MESSAGES = 2_000
MAX_OPTIONS_BYTES = 256 << 10
HINTS = ("service_tier", "prompt_cache_key", "prompt_cache_retention", "safety_identifier")  # without effect

Unsupported: TypeAlias = Annotated[None, Meta(description="left out: this is not supported")]
Tokens: TypeAlias = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
Verbosity: TypeAlias = Literal["low", "medium", "high"]


class TextFormat(Fields, tag="text", tag_field="type"):
    """Plain text."""


class JsonObjectFormat(Fields, tag="json_object", tag_field="type"):
    """Any JSON object."""


class ConversationReference(Fields):
    id: SessionIdText


class HermesWish(Fields):
    """Wishes of clients that know Hermes. `tools`: those of the server that the model gets, or "none"."""

    tools: Literal["none"] | list[Text] | None = None


def notices(without_effect: Sequence[str], unknown: Sequence[str]) -> list[str]:
    """Return notices about fields that were ignored."""
    said = []
    if without_effect:
        said.append(f"These fields have no effect: {', '.join(without_effect)}.")
    if unknown:
        said.append(f"Unknown fields were ignored: {', '.join(unknown)[:200]}.")
    return said


def check_options(options: bytes, *, more: int = 0) -> bytes:
    """Check the size of a turn's options. They are stored with the session while the turn is open."""
    if len(options) > MAX_OPTIONS_BYTES + more:
        contradict("tools", f"The options of a turn must have at most {MAX_OPTIONS_BYTES} bytes, tools included.")
    return options
