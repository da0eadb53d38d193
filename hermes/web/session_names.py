"""Names of sessions for people: the title, else the beginning of the first message."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final

from hermes.domain.ids import Seq, SessionId
from hermes.domain.read.views import StoredMessage
from hermes.domain.session.state import Session
from hermes.web.page_kit import PageKit

_READ: Final = 5  # messages; the first ones can be notes
_CHARS: Final = 80


async def names_of(kit: PageKit, sessions: Sequence[Session]) -> dict[SessionId, str]:
    """Return a name for each session; its id if it has neither title nor message."""
    named = await asyncio.gather(*(_name(kit, session) for session in sessions))
    return {session.id: name for session, name in zip(sessions, named, strict=True)}


async def _name(kit: PageKit, session: Session) -> str:
    if session.preferences.title:
        return str(session.preferences.title)
    first = await kit.service.sessions.messages(session.id, Seq(-1), _READ, exact=True)
    said = (
        each for each in first if session.assignment is not None or not each.note
    )  # the task of a child is a note
    return next((text for each in said if (text := beginning(each))), str(session.id))


def beginning(stored: StoredMessage) -> str:
    """Return the beginning of a message on one line; empty for another one than a user message."""
    message: dict[str, Any] = json.loads(stored.message)
    if message.get("role") != "user":
        return ""
    content = message.get("content")
    if isinstance(content, list):
        content = " ".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    text = " ".join(content.split()) if isinstance(content, str) else ""
    return text if len(text) <= _CHARS else f"{text[: _CHARS - 1]}…"
