"""Errors in the format of the OpenAI API, and the table of their status codes.

HermesErrors and failed turns are translated only here. An unexpected error becomes a 500 with an id that is also in
the log; a client never sees a traceback.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from dataclasses import field
from http import HTTPStatus

from aiohttp import web
from loguru import logger

from hermes.adapters.http import presentation
from hermes.adapters.http.caller import shown_failure
from hermes.domain.access.permission import NEEDS_APPROVER
from hermes.domain.errors import (
    BadInputError,
    BusyError,
    HermesError,
    OutcomeUnknownError,
    SessionParkedError,
    SetAsideError,
    StoppingError,
    StorageError,
    StorageFullError,
    UnknownSessionError,
)
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    status: int
    code: str
    message: str
    param: str | None = None
    retry_after_s: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    close: bool = False  # the rest of the request is not read

    def body(self) -> presentation.JsonObject:
        kind = "server_error" if self.status >= 500 else _TYPES.get(self.status, "invalid_request_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    def response(self) -> web.Response:
        headers = dict(self.headers)
        if self.retry_after_s is not None:
            headers["Retry-After"] = str(max(1, math.ceil(self.retry_after_s)))
        body = presentation.encode(self.body())
        response = web.Response(status=self.status, body=body, headers=headers, content_type="application/json")
        if self.close:
            response.force_close()
        return response


class ProblemError(Exception):
    """Ends a request with an error answer."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def refusal(
    status: int, code: str, message: str, *, close: bool = False, retry_after_s: float | None = None
) -> ProblemError:
    return ProblemError(Problem(status=status, code=code, message=message, close=close, retry_after_s=retry_after_s))


_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}

_ERRORS: tuple[tuple[type[HermesError], int, str], ...] = (  # the first match counts
    (BadInputError, 400, "invalid_value"),
    (BusyError, 429, "busy"),
    (StoppingError, 503, "stopping"),
    (SessionParkedError, 409, "session_parked"),
    (SetAsideError, 500, "dead_letter"),
    (UnknownSessionError, 404, "session_not_found"),
    (OutcomeUnknownError, 500, "outcome_unknown"),
    (StorageFullError, 503, "storage_full"),
    (StorageError, 500, "storage_error"),
    (HermesError, 500, "internal_error"),
)
_OWN_STATUS = {  # bad input with its own status
    "idempotency_mismatch": 422,
    "unprocessable": 422,
    "unknown_dead_letter": 404,
    "unknown_outbox_message": 404,
    "unknown_process": 404,
    "unknown_job": 404,
    "job_running": 409,
    "job_ended": 409,
    "ambiguous_job": 409,
    "bad_job": 422,
    "bad_schedule": 422,
    "bad_timezone": 422,
    "bad_target": 422,
    "blocked_prompt": 422,
    "too_many_jobs": 409,
    "unknown_key": 404,
    "key_exists": 409,
    "process_lost": 404,
    "process_ended": 409,
    "wrong_phase": 409,
    "session_in_use": 409,
    NEEDS_APPROVER: 403,
    "ending_already": 409,
    "bad_configuration": 409,
    "turn_taken_back": 409,
    "nothing_to_undo": 409,
    "call_not_waiting": 409,
    "session_of_another_key": 409,
}
_STORAGE_FULL_RETRY_S = 30

_FAILURES: dict[FailureKind, tuple[int, str]] = {
    FailureKind.AUTH: (502, "upstream_auth"),
    FailureKind.BILLING: (502, "upstream_billing"),
    FailureKind.RATE_LIMIT: (429, "rate_limit_exceeded"),
    FailureKind.OVERLOADED: (503, "upstream_overloaded"),
    FailureKind.TIMEOUT: (504, "upstream_timeout"),
    FailureKind.CONNECTION: (502, "upstream_connection"),
    FailureKind.CONTEXT_OVERFLOW: (400, "context_length_exceeded"),
    FailureKind.BAD_REQUEST: (400, "upstream_bad_request"),
    FailureKind.MALFORMED_REPLY: (502, "upstream_malformed_reply"),
    FailureKind.POLICY: (400, "content_filter"),
    FailureKind.UNSUPPORTED: (501, "unsupported"),
    FailureKind.BUDGET: (402, "budget_exceeded"),
    FailureKind.CANCELLED: (409, "cancelled"),
    FailureKind.SUSPENDED: (409, "session_suspended"),
    FailureKind.INTERNAL: (500, "internal_error"),
}
_FAILURE_RETRY_S = 5.0  # if the endpoint gave none


def of_error(error: Exception) -> Problem:
    match error:
        case ProblemError():
            return error.problem
        case HermesError():
            return _of_hermes_error(error)
        case web.HTTPException():
            return _of_http_exception(error)
    return _of_surprise(error)


def of_failure(failure: Failure, *, keyed: bool) -> Problem:
    """Translate a failed turn. `keyed`: its request had an Idempotency-Key."""
    status, code = _FAILURES[failure.kind]
    failure = shown_failure(failure)
    if status not in (429, 503):
        return Problem(status=status, code=code, message=failure.message)
    again = "under a new Idempotency-Key would store it twice" if keyed else "again within a minute does the same"
    message = (
        f"{failure.message.rstrip('.')}. The message is stored: `/retry` in its session retries it; "
        f"sending it {again}."
    )
    retry_after_s = failure.retry_after_s or _FAILURE_RETRY_S
    return Problem(status=status, code=code, message=message, retry_after_s=retry_after_s)


def _of_hermes_error(error: HermesError) -> Problem:
    status, code = next((status, code) for kind, status, code in _ERRORS if isinstance(error, kind))
    if isinstance(error, BadInputError):
        code = error.code
    retry_after_s = _STORAGE_FULL_RETRY_S if code == "storage_full" else getattr(error, "retry_after_s", None)
    if status == 500:
        logger.error("a request failed, {}: {}", code, error)
    return Problem(
        status=_OWN_STATUS.get(code, status),
        code=code,
        message=str(error),
        param=getattr(error, "param", None),
        retry_after_s=retry_after_s,
    )


def _of_http_exception(error: web.HTTPException) -> Problem:
    """Translate an error of the framework, such as an unknown path."""
    code = HTTPStatus(error.status).phrase.lower().replace(" ", "_")
    headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
    text = {404: "There is no such route.", 405: "This route does not support this method."}
    return Problem(status=error.status, code=code, message=text.get(error.status, error.reason), headers=headers)


def _of_surprise(error: Exception) -> Problem:
    error_id = uuid.uuid4().hex[:12]
    logger.opt(exception=error).error("http: unexpected error {}", error_id)
    message = f"Internal error. The log has the details under error id {error_id}."
    return Problem(status=500, code="internal_error", message=message)
