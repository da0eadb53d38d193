"""Split of a long text into Telegram messages of 4,096 UTF-16 units."""

from __future__ import annotations

from hermes.adapters.chat import parts

LIMIT = 4096  # UTF-16 units
_SPARE = 96  # reserved for a line that delivery may put in front


def split(text: str, limit: int = LIMIT - _SPARE) -> tuple[str, ...]:
    return parts.split(text, limit)
