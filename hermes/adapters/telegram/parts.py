"""A long text as messages that Telegram takes, which is 4,096 UTF-16 units."""

from __future__ import annotations

from hermes.adapters.chat import parts

LIMIT = 4096  # UTF-16 units
_SPARE = 96  # of them are left for a line that whoever delivers may put in front


def split(text: str, limit: int = LIMIT - _SPARE) -> tuple[str, ...]:
    """At least one part, none of them blank."""
    return parts.split(text, limit)
