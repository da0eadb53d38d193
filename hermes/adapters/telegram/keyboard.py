"""Inline buttons of a message, and the data of a button press.

A button has 64 bytes of data. They hold the question's token, which can be derived again from the question, and the
index of the choice, so a press works after a restart.
"""

from __future__ import annotations

import re

from telegram import InlineKeyboardButton, InlineKeyboardMarkup

from hermes.adapters.chat.utf16 import prefix
from hermes.domain.access.question import token_of
from hermes.domain.outbox_message import OutboxMessage

_MAX_LABEL = 64  # UTF-16 units; phones show no more


def keyboard(outgoing: OutboxMessage) -> InlineKeyboardMarkup | None:
    """Return one button per row, because choices may be long."""
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
    """Return the token and the index of the choice; None if it is not our button."""
    found = re.fullmatch(r"a:([A-Za-z0-9_-]{1,40}):(\d{1,4})", data)
    return (found[1], int(found[2])) if found else None


def _label(choice: str) -> str:
    words = " ".join(choice.split()) or "…"
    return words if prefix(words, _MAX_LABEL) == words else prefix(words, _MAX_LABEL - 1) + "…"
