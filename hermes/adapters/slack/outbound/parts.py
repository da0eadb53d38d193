"""A long text as messages that Slack takes: a block holds 3,000 characters of mrkdwn.

Cut before it is converted, with room for what the notation adds. Nothing is converted to find out, as that takes
milliseconds a part: only escapes are counted, which can make a text five times as long. A part whose markup does not
fit after all goes without. The same text gives the same parts.
"""

from __future__ import annotations

from hermes.adapters.chat.parts import split
from hermes.adapters.slack.outbound.blocks import SECTION
from hermes.adapters.slack.outbound.mrkdwn import escape, to_mrkdwn

_LIMIT = 2600
_MIN = 400  # what an escape makes five times as long still fits


def parts(text: str) -> tuple[str, ...]:
    """At least one, none of them blank."""
    return tuple(piece for part in split(text, _LIMIT) for piece in _fitting(part, _LIMIT))


def shown(part: str) -> str:
    """The part as mrkdwn that fits into a block."""
    marked_up = to_mrkdwn(part)
    if marked_up.strip() and len(marked_up) <= SECTION:
        return marked_up
    plain = escape(part)
    # Never within an escape, of which a half would be shown as it is.
    return plain if len(plain) <= SECTION else escape(part[: SECTION // 5])


def _fitting(part: str, limit: int) -> tuple[str, ...]:
    if limit <= _MIN or len(escape(part)) <= SECTION - (SECTION - _LIMIT) // 2:
        return (part,)
    limit = max(_MIN, limit // 2)
    return tuple(piece for each in split(part, limit) for piece in _fitting(each, limit))
