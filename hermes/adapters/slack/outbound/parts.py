"""Split of a long text into Slack messages: a block holds 3,000 characters of mrkdwn.

The text is cut before the conversion, with room for the notation. Converting to measure would take milliseconds per
part, so only escapes are counted; they can make a text five times as long. A part whose markup does not fit is sent
without markup. The same text gives the same parts.
"""

from __future__ import annotations

from hermes.adapters.chat.parts import split
from hermes.adapters.slack.outbound.blocks import SECTION
from hermes.adapters.slack.outbound.mrkdwn import escape, to_mrkdwn

_LIMIT = 2600
_MIN = 400  # fits even if escapes make it five times as long


def parts(text: str) -> tuple[str, ...]:
    """Split the text. Returns at least one part; no part is blank."""
    return tuple(piece for part in split(text, _LIMIT) for piece in _fitting(part, _LIMIT))


def shown(part: str) -> str:
    """Convert a part to mrkdwn that fits into a block."""
    marked_up = to_mrkdwn(part)
    if marked_up.strip() and len(marked_up) <= SECTION:
        return marked_up
    plain = escape(part)
    # Never cut within an escape.
    return plain if len(plain) <= SECTION else escape(part[: SECTION // 5])


def _fitting(part: str, limit: int) -> tuple[str, ...]:
    if limit <= _MIN or len(escape(part)) <= SECTION - (SECTION - _LIMIT) // 2:
        return (part,)
    limit = max(_MIN, limit // 2)
    return tuple(piece for each in split(part, limit) for piece in _fitting(each, limit))
