"""Exponential backoff. Pure."""

from __future__ import annotations


def backoff_s(failures: int, *, first_s: float, max_s: float, jitter: float = 1.0) -> float:
    """Return the delay after this many failures in a row: `first_s`, doubled with each further one, at most `max_s`.

    Half of the delay is fixed. `jitter`, from 0 to 1, scales the other half, so that clients that failed together
    do not return together.
    """
    delay_s: float = min(max_s, first_s * 2 ** min(failures - 1, 20))
    return delay_s * (1 + jitter) / 2
