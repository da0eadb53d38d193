"""How long to wait before what failed is tried again. Pure."""

from __future__ import annotations


def growing_pause_s(failures: int, *, first_s: float, longest_s: float, jitter: float) -> float:
    """Twice as long after each failure in a row. Half of it is fixed, and half as `jitter` says, from 0 to 1."""
    pause_s: float = min(longest_s, first_s * 2 ** min(failures - 1, 20))
    return pause_s * (0.5 + jitter / 2)
