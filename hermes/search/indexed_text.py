"""Text of a message in a journal record. Only this module knows which kinds of records hold text."""

from __future__ import annotations

import json
from typing import Any

from hermes.domain.access.role import OWNER_SURFACES
from hermes.domain.records import Amended, BadRecord, MessageReceived, Record, TurnFinished
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.values import dataclass
from hermes.ports.search import OWNER


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageText:
    role: str
    text: str
    at: float
    platform: str = ""  # empty: not in the record
    person: str = ""


def texts_of(record: Record | BadRecord) -> tuple[MessageText, ...]:
    match record:
        case MessageReceived():  # messages before the last one were indexed earlier
            found = _decoded(record.messages[-1], record.at, record.source) if record.messages else None
        case Amended():
            found = _decoded(record.messages[-1], record.at)
        case TurnFinished():
            found = _decoded(record.message, record.at)
        case _:
            found = None
    return (found,) if found else ()


def person_of(source: Source) -> str:
    """Return PLATFORM:USER, or OWNER on a surface that only the owner reaches; empty if nothing tells."""
    if source.user:
        return source.by
    return OWNER if source.platform in OWNER_SURFACES else ""


def _decoded(encoded: EncodedMessage, at: float, source: Source | None = None) -> MessageText | None:
    try:
        message = json.loads(encoded)
    except ValueError:  # damage in the journal is reported elsewhere
        return None
    if not isinstance(message, dict):
        return None
    text = text_in(message.get("content")).strip()
    if not text:
        return None
    platform, person = ("", "") if source is None else (source.platform, person_of(source))
    return MessageText(role=str(message.get("role", "")), text=text, at=at, platform=platform, person=person)


def text_in(content: Any) -> str:
    """Return the text of a message's content, which is a text or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        text = content.get("text")
        return text if isinstance(text, str) else ""
    return "\n".join(filter(None, map(text_in, content))) if isinstance(content, list) else ""
