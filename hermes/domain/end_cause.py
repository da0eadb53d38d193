"""The cause of a session's end, also for stores that kept only its reason as text."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.domain.types import EndCause, Phase, Session

# Texts that versions without causes wrote themselves. A conversation that went on had a successor.
_EARLIER: Mapping[str, EndCause] = {
    "compression": EndCause.COMPRESSION,
    "taken back to before its beginning": EndCause.TAKEN_BACK,
}


def end_cause(session: Session) -> EndCause | None:
    """Return why the session ended, or None while it is open."""
    if session.phase is not Phase.ENDED:
        return None
    if session.end_cause is not EndCause.UNKNOWN or session.successor is None:
        return session.end_cause
    return _EARLIER.get(session.reason, EndCause.UNKNOWN)


def was_compressed(session: Session) -> bool:
    return end_cause(session) is EndCause.COMPRESSION


def goes_on(session: Session) -> bool:
    """Return whether the session has ended and its conversation has not."""
    return end_cause(session) in (EndCause.COMPRESSION, EndCause.TAKEN_BACK)
