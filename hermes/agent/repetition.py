"""Detection of an answer that repeats itself endlessly, as small models do. Pure."""

from __future__ import annotations

UNIT_MAX = 300  # characters of the repeated text
TIMES_MIN = 4
LENGTH_MIN = 200  # characters of all repetitions together: a line of dashes is not a loop


def is_looping(text: str) -> bool:
    """Return whether the text ends with many repetitions of the same text."""
    for size in range(1, UNIT_MAX + 1):
        times = max(TIMES_MIN, -(-LENGTH_MIN // size))
        if len(text) < size * times:
            continue
        if text.endswith(text[-size:] * times):
            return True
    return False
