"""When to try a model call again. A pure schedule: the caller brings the failure, the count and the dice."""

from __future__ import annotations

from hermes.domain.backoff import backoff_s
from hermes.domain.turn_failure import Failure, FailureKind

TRIES_MAX = 4
FIRST_BACKOFF_S = 1.0
BACKOFF_MAX_S = 8.0
PATIENCE_S = 60.0  # asked to wait for longer than this, the turn fails instead and says so

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
    """Seconds until the next try after so many failed ones, or None to give up. `jitter` is from [0, 1).

    A wait that the endpoint asked for is never cut short: the backoff is added to it.
    """
    if failure.kind not in RETRYABLE or tries >= TRIES_MAX:
        return None
    asked_s = failure.retry_after_s or 0.0
    if asked_s > PATIENCE_S:
        return None
    return asked_s + backoff_s(tries, first_s=FIRST_BACKOFF_S, max_s=BACKOFF_MAX_S, jitter=jitter)
