"""Cause of a session's end, also for stores that hold only its reason as text."""

from __future__ import annotations

from hermes.domain.cause.cause import EndCause
from hermes.domain.cause.legacy_reason import legacy_end_cause
from hermes.domain.session.state import Phase, Session


def end_cause(session: Session) -> EndCause | None:
    """Return why the session ended, or None while it is open."""
    if session.phase is not Phase.ENDED:
        return None
    if session.end_cause is not EndCause.UNKNOWN or session.successor is None:
        return session.end_cause
    return legacy_end_cause(session.reason)  # a continued session has a successor


def was_compressed(session: Session) -> bool:
    return end_cause(session) is EndCause.COMPRESSION


def goes_on(session: Session) -> bool:
    """Return whether the conversation continues in another session."""
    return end_cause(session) in (EndCause.COMPRESSION, EndCause.TAKEN_BACK)
