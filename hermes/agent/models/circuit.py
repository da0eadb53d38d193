"""Circuit breaker of model endpoints: one that fails again and again is left alone for a while, by all sessions."""

from __future__ import annotations

from hermes.domain.backoff import backoff_s
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.values import replace
from hermes.ports.given import Clock

OPENS_AFTER = 8  # failures in a row
FIRST_PAUSE_S = 5.0
MAX_PAUSE_S = 30.0
PROBE_S = 30.0  # others wait so long for the first call after a pause
_OUTAGE = frozenset({FailureKind.OVERLOADED, FailureKind.TIMEOUT, FailureKind.CONNECTION})


class CircuitBreaker:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: dict[str, int] = {}  # in a row, by endpoint
        self._closed_at: dict[str, float] = {}  # when an endpoint may be called again
        self._last: dict[str, Failure] = {}

    def wait_s(self, endpoint: str) -> float:
        """Return the seconds until the endpoint may be called. Zero allows the caller one call."""
        until = self._closed_at.get(endpoint)
        if until is None:
            return 0.0
        now = self._clock()
        if now < until:
            return until - now
        self._closed_at[endpoint] = now + PROBE_S  # for the others, until this call has a result
        return 0.0

    def answered(self, endpoint: str) -> None:
        self._failures.pop(endpoint, None)
        self._closed_at.pop(endpoint, None)

    def problem(self, endpoint: str) -> Failure | None:
        """Return why the endpoint may not be called now; None if the caller may make one call."""
        wait_s = self.wait_s(endpoint)
        return replace(self._last[endpoint], retry_after_s=wait_s) if wait_s else None

    def failed(self, endpoint: str, failure: Failure) -> None:
        if failure.kind not in _OUTAGE:
            self.answered(endpoint)  # it works, and refused this request
            return
        failures = self._failures[endpoint] = self._failures.get(endpoint, 0) + 1
        if endpoint and failures >= OPENS_AFTER:
            pause_s = backoff_s(failures - OPENS_AFTER + 1, first_s=FIRST_PAUSE_S, max_s=MAX_PAUSE_S)
            self._closed_at[endpoint] = self._clock() + pause_s
            self._last[endpoint] = failure

    def open_endpoints(self) -> list[str]:
        return sorted(self._closed_at)
