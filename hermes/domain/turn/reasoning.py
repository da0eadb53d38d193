"""Reasoning of a model, stored in its message under a key of its own. Pure.

The key is the last one of the message, so that it can be cut off without parsing. It never reaches an endpoint as it
is: what an endpoint needs back is put into its own fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hermes.domain.turn.message import EncodedMessage
from hermes.domain.values import dataclass

KEY = "hermes_reasoning"
MARK = f',"{KEY}":'.encode()  # cannot occur within a JSON string, where quotes are escaped


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    text: str = ""  # for people
    provider: str = ""  # that made it, and understands the items
    model: str = ""
    items: tuple[Mapping[str, Any], ...] = ()  # as the provider wants them back

    def __bool__(self) -> bool:
        return bool(self.text or self.items)


def fields_of(reasoning: Reasoning) -> dict[str, Any]:
    """Return the fields to append to a message."""
    if not reasoning:
        return {}
    stored = {"text": reasoning.text, "provider": reasoning.provider, "model": reasoning.model}
    return {KEY: {**stored, "items": list(reasoning.items)} if reasoning.items else stored}


def without_reasoning(message: EncodedMessage) -> EncodedMessage:
    place = message.rfind(MARK)
    return message if place < 0 else EncodedMessage(message[:place] + b"}")


def reasoning_of(message: EncodedMessage) -> Reasoning:
    place = message.rfind(MARK)
    if place < 0:
        return Reasoning()
    try:
        stored = json.loads(message[place + len(MARK) : -1])
    except (ValueError, RecursionError):
        return Reasoning()
    return read_reasoning(stored)


def read_reasoning(stored: object) -> Reasoning:
    """Return the reasoning of a message's parsed key. Unknown shapes count as none."""
    if not isinstance(stored, dict):
        return Reasoning()
    items = stored.get("items")
    return Reasoning(
        text=str(stored.get("text") or ""),
        provider=str(stored.get("provider") or ""),
        model=str(stored.get("model") or ""),
        items=tuple(item for item in items if isinstance(item, dict)) if isinstance(items, list) else (),
    )
