"""Side requests of chat programs: a title, tags or follow-up questions for a conversation. Pure.

Programs send them by themselves, with the conversation quoted in one message. They are no part of it: they need no
tools, and a session of their own would bury the real ones.
"""

from __future__ import annotations

import re
from typing import Final

from hermes.adapters.openai_api.turns.conversation_input import ConversationInput

_OPEN_WEBUI: Final = re.compile(r"\s*### Task:\s.*(### Chat History:|<chat_history>)", re.DOTALL)
_TITLE: Final = re.compile(
    r"\s*(provide|generate|create|write)\b[^\n]{0,80}\b(title|tags)\b[^\n]{0,200}\b(conversation|chat)\b",
    re.IGNORECASE,
)
_QUOTES: Final = re.compile(
    r"(conversation|chat|history|user|assistant)\W{0,4}:|<(conversation|chat_history)>", re.IGNORECASE
)


def is_side_request(given: ConversationInput) -> bool:
    """Return whether a request asks for a title, tags or follow-up questions of a quoted conversation."""
    if given.history or len(given.new) != 1 or given.new[0]["role"] != "user":
        return False
    text = given.new[0]["content"]
    if not isinstance(text, str):
        return False
    return bool(_OPEN_WEBUI.match(text) or (_TITLE.match(text) and _QUOTES.search(text)))
