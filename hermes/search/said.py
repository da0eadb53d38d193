"""From a journal record to what was said in it: the only place that knows which kinds of records hold text."""

from __future__ import annotations

import json
from typing import Any

from hermes.domain.message import EncodedMessage
from hermes.domain.records import Amended, BadRecord, MessageReceived, Record, TurnFinished
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    role: str
    text: str
    at: float
    platform: str = ""  # empty: the record does not tell


def texts_of(record: Record | BadRecord) -> tuple[Said, ...]:
    match record:
        case MessageReceived():  # whatever came before the last message was said, and indexed, earlier
            found = _said(record.messages[-1], record.at, record.source.platform) if record.messages else None
        case Amended():
            found = _said(record.messages[-1], record.at)
        case TurnFinished():
            found = _said(record.message, record.at)
        case _:
            found = None
    return (found,) if found else ()


def _said(encoded: EncodedMessage, at: float, platform: str = "") -> Said | None:
    try:
        message = json.loads(encoded)
    except ValueError:  # somebody else's problem: the index is no judge of the journal
        return None
    if not isinstance(message, dict):
        return None
    text = _text(message.get("content")).strip()
    return Said(role=str(message.get("role", "")), text=text, at=at, platform=platform) if text else None


def _text(content: Any) -> str:
    """A message's content is a text or a list of parts, of which those with text count."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        text = content.get("text")
        return text if isinstance(text, str) else ""
    return "\n".join(filter(None, map(_text, content))) if isinstance(content, list) else ""
