"""Errors of the client. Each has a code to branch on."""

from __future__ import annotations

from hermes.domain.errors import HermesError


class ApiError(HermesError):
    """The server refused a request. `code` and `status` are those of its answer."""

    def __init__(self, message: str, *, status: int, code: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s


class ConnectionFailedError(HermesError):
    """The server cannot be reached, or the connection was lost."""

    code = "connection_failed"
