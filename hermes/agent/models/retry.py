"""Retry schedule of model calls. Pure: the failure, the number of tries and the jitter are arguments."""

from __future__ import annotations

from hermes.domain.backoff import backoff_s
from hermes.domain.turn_failure import Failure, FailureKind

TRIES_MAX = 4
FIRST_BACKOFF_S = 1.0
BACKOFF_MAX_S = 8.0
MAX_RETRY_AFTER_S = 60.0  # the turn fails if the endpoint requests a longer wait

RETRYABLE = frozenset(
    {
        FailureKind.RATE_LIMIT,
        FailureKind.OVERLOADED,
        FailureKind.TIMEOUT,
        FailureKind.CONNECTION,
        FailureKind.MALFORMED_REPLY,
    }
)


def next_delay(failure: Failure, tries: int, jitter: float) -> float | None:
    """Return the seconds until the next try after `tries` failures; None to give up. `jitter` is in [0, 1).

    The backoff is added to the wait that the endpoint requests.
    """
    if failure.kind not in RETRYABLE or tries >= TRIES_MAX:
        return None
    asked_s = failure.retry_after_s or 0.0
    if asked_s > MAX_RETRY_AFTER_S:
        return None
    return asked_s + backoff_s(tries, first_s=FIRST_BACKOFF_S, max_s=BACKOFF_MAX_S, jitter=jitter)
