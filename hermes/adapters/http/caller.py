"""Caller of the current request, and what an answer reveals to it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from hermes.domain.access.api_key import ApiKey
from hermes.domain.read.views import SessionView
from hermes.domain.turn.turn_failure import Failure, FailureCause, FailureKind
from hermes.domain.values import replace

CALLER: ContextVar[ApiKey | None] = ContextVar("caller")  # None: the owner; unset: no access
HIDDEN_CAUSE: Final = "The model call failed. The owner of this Hermes sees the cause in the log and in `hermes why`."
_OWN_TEXTS: Final = (FailureKind.BUDGET, FailureKind.CANCELLED, FailureKind.SUSPENDED)


def is_owner() -> bool:
    return CALLER.get(None) is None


def shown_failure(failure: Failure) -> Failure:
    """Return a failure for the caller. Only the owner sees the endpoint's words, which can contain secrets."""
    if is_owner() or failure.kind in _OWN_TEXTS:
        return failure
    return replace(failure, message=HIDDEN_CAUSE, address="", cause=FailureCause.NONE, status=0)


def shown_why(view: SessionView) -> str:
    """Return why a session is as it is, for the caller."""
    session, text = view.session, view.why
    if session.last_failure is not None and session.last_failure.message:
        text = text.replace(session.last_failure.message, shown_failure(session.last_failure).message)
    if session.compression_problem and not is_owner():
        text = text.replace(session.compression_problem, HIDDEN_CAUSE)
    return text
