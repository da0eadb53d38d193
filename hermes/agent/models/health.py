"""Model health since the daemon started: the last answer and the last failure."""

from __future__ import annotations

from typing import Any

from hermes.domain.turn.turn_failure import Failure
from hermes.ports.given import Clock


class ModelHealth:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answered_at: float | None = None
        self._failed_at: float | None = None
        self._failed_model = ""
        self._failure: Failure | None = None

    def answered(self) -> None:
        self._answered_at = self._clock()

    def failed(self, model: str, failure: Failure) -> None:
        self._failed_at, self._failed_model, self._failure = self._clock(), model, failure

    def facts(self) -> dict[str, Any]:
        """Return the facts for people and programs, without any text of the provider."""
        failure = self._failure
        last = None
        if failure is not None:
            last = {
                "at": self._failed_at,
                "model": self._failed_model,
                "code": failure.kind.value,
                "cause": failure.cause.value,
                "status": failure.status or None,
                "address": failure.address,
            }
        return {"answered_at": self._answered_at, "last_failure": last}
