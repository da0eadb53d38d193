"""Retry schedule of model calls. Pure: failures, tries, times and the jitter are arguments.

A call that fails is repeated a few times within seconds. If all models of the chain fail and at least one has an
outage, the chain is asked again until the patience for outages is used up.
"""

from __future__ import annotations

from collections.abc import Iterable

from hermes.domain.backoff import backoff_s
from hermes.domain.turn.turn_failure import Failure, FailureKind

TRIES_MAX = 4
FIRST_BACKOFF_S = 1.0
BACKOFF_MAX_S = 8.0
MAX_RETRY_AFTER_S = 60.0  # a longer wait counts as an outage
FIRST_OUTAGE_BACKOFF_S = 8.0
OUTAGE_BACKOFF_MAX_S = 30.0

RETRYABLE = frozenset(
    {
        FailureKind.RATE_LIMIT,
        FailureKind.OVERLOADED,
        FailureKind.TIMEOUT,
        FailureKind.CONNECTION,
        FailureKind.MALFORMED_REPLY,
    }
)


OUTAGE = RETRYABLE - {FailureKind.MALFORMED_REPLY}


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


def outage_delay(failures: Iterable[Failure], rounds: int, jitter: float, *, left_s: float) -> float | None:
    """Return the seconds until the chain is asked again after `rounds` rounds; None if no model can recover in time.

    `left_s` is the rest of the patience.
    """
    waits = [each.retry_after_s or 0.0 for each in failures if each.kind in OUTAGE]
    if not waits:
        return None
    delay_s = min(waits) + backoff_s(
        rounds, first_s=FIRST_OUTAGE_BACKOFF_S, max_s=OUTAGE_BACKOFF_MAX_S, jitter=jitter
    )
    return delay_s if delay_s <= left_s else None
