"""Failure of a turn."""

from __future__ import annotations

from enum import StrEnum

from hermes.domain.cause.cause import StopCause
from hermes.domain.values import dataclass


class FailureKind(StrEnum):
    """Kind of a turn's failure."""

    AUTH = "auth"
    BILLING = "billing"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    CONTEXT_OVERFLOW = "context_overflow"
    BAD_REQUEST = "bad_request"
    MALFORMED_REPLY = "malformed_reply"
    POLICY = "policy"
    UNSUPPORTED = "unsupported"
    BUDGET = "budget"  # what may be spent has been spent
    CANCELLED = "cancelled"
    SUSPENDED = "suspended"  # not ended: it goes on when its session is resumed
    INTERNAL = "internal"


class FailureCause(StrEnum):
    """Problem between Hermes and a model endpoint."""

    NONE = ""  # not known, or there is no endpoint
    REFUSED = "refused"
    UNKNOWN_HOST = "unknown_host"
    TLS = "tls"
    TIMEOUT = "timeout"
    BROKEN = "broken"  # the connection ended too early
    UNREACHABLE = "unreachable"
    STATUS = "status"  # the endpoint answered with an HTTP error


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    kind: FailureKind
    message: str
    retry_after_s: float | None = None
    address: str = ""  # of the endpoint, without user name and query
    cause: FailureCause = FailureCause.NONE
    status: int = 0  # of HTTP
    stop: StopCause = StopCause.UNKNOWN  # of a turn that was cancelled
    by: str = ""  # platform and user of the person who stopped it

    @property
    def brief(self) -> str:
        return f"{self.kind} ({self.status})" if self.status else str(self.kind)
