"""When to try a model call again. A pure schedule: the caller brings the failure, the count and the dice."""

from __future__ import annotations

from hermes.domain.types import Failure, FailureKind

TRIES_MAX = 4
BASE_S = 0.5
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

    Half of the backoff is fixed, so that the waits grow and none is next to nothing; the other half is jitter, so
    that clients that failed together do not come back together. A wait that the endpoint asked for is never cut
    short: both come on top of it.
    """
    if failure.kind not in RETRYABLE or tries >= TRIES_MAX:
        return None
    backoff_s = (1 + jitter) / 2 * min(BACKOFF_MAX_S, BASE_S * 2**tries)
    asked_s = failure.retry_after_s or 0.0
    return None if asked_s > PATIENCE_S else asked_s + backoff_s
