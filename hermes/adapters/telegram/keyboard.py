"""Buttons below a message, and what a press of one says.

Telegram gives a button 64 bytes to remember what it is for. It carries the question's token, which can be worked out
again from the question, and its own number among the choices: a press means the same after a restart.
"""

from __future__ import annotations

import re

from telegram import InlineKeyboardButton, InlineKeyboardMarkup

from hermes.adapters.chat.utf16 import prefix
from hermes.domain.access.question import token_of
from hermes.domain.types import OutboxMessage

_MAX_LABEL = 64  # UTF-16 units; a longer one would not be seen on a phone anyway


def keyboard(outgoing: OutboxMessage) -> InlineKeyboardMarkup | None:
    """One button below the other, as choices may be long."""
    token = token_of(outgoing)
    if not token:
        return None
    return InlineKeyboardMarkup(
        [
            [InlineKeyboardButton(_label(choice), callback_data=f"a:{token}:{number}")]
            for number, choice in enumerate(outgoing.choices)
        ]
    )


def pressed(data: str) -> tuple[str, int] | None:
    """The token and the number of the choice; None: the button is none of ours."""
    found = re.fullmatch(r"a:([A-Za-z0-9_-]{1,40}):(\d{1,4})", data)
    return (found[1], int(found[2])) if found else None


def _label(choice: str) -> str:
    words = " ".join(choice.split()) or "…"
    return words if prefix(words, _MAX_LABEL) == words else prefix(words, _MAX_LABEL - 1) + "…"
