"""Messages as Slack blocks with buttons, and the data of a button press.

Edited messages made of blocks are not marked as edited. A button has the question's token, which can be derived again
from the question, the index of the choice, and the whole choice, because its label may be shortened. So a press works
after a restart.
"""

from __future__ import annotations

import re
from typing import Any

from hermes.domain.access.question import token_of
from hermes.domain.outbox_message import OutboxMessage

SECTION = 3000  # characters of text in one block
_MAX_LABEL = 75
_MAX_VALUE = 2000
_MAX_IN_A_ROW = 25
_SHAPE = re.compile(r"([A-Za-z0-9_-]{1,40}):(\d{1,4}):(.*)", re.DOTALL)


def blocks(outgoing: OutboxMessage, text: str, *, last: bool) -> list[dict[str, Any]]:
    """Build blocks from mrkdwn of at most SECTION characters. Buttons are below the last part."""
    section = {"type": "section", "text": {"type": "mrkdwn", "text": text}, "expand": True}
    return [section, *(_buttons(outgoing) if last else ())]


def pressed(value: str) -> tuple[str, int, str] | None:
    """Return the token, the index and the choice; None if it is not our button."""
    found = _SHAPE.fullmatch(value)
    return (found[1], int(found[2]), found[3]) if found else None


def _buttons(outgoing: OutboxMessage) -> list[dict[str, Any]]:
    token = token_of(outgoing)
    if not token:
        return []
    buttons = [
        {
            "type": "button",
            "action_id": f"hermes:{number}",
            "text": {"type": "plain_text", "text": _label(choice)},
            "value": f"{token}:{number}:{choice}"[:_MAX_VALUE],
        }
        for number, choice in enumerate(outgoing.choices)
    ]
    return [
        {"type": "actions", "elements": buttons[at : at + _MAX_IN_A_ROW]}
        for at in range(0, len(buttons), _MAX_IN_A_ROW)
    ]


def _label(choice: str) -> str:
    words = " ".join(choice.split()) or "…"
    return words if len(words) <= _MAX_LABEL else words[: _MAX_LABEL - 1] + "…"
