"""Recognises an answer that repeats itself without end, as small models do. Pure."""

from __future__ import annotations

UNIT_MAX = 300  # characters of what is repeated
TIMES_MIN = 4
LENGTH_MIN = 200  # characters of all repetitions together: a line of dashes is no loop


def is_looping(text: str) -> bool:
    """Return whether the text ends with the same words again and again."""
    for size in range(1, UNIT_MAX + 1):
        times = max(TIMES_MIN, -(-LENGTH_MIN // size))
        if len(text) < size * times:
            continue
        if text.endswith(text[-size:] * times):
            return True
    return False
