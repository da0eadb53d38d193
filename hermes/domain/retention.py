"""Retention of conversations: which ones are old enough to be deleted. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from hermes.domain.cause.cause import EndCause
from hermes.domain.session.state import Phase, Session, is_pending


def last_used_at(session: Session) -> float:
    """Return when a person last wrote, or the session last changed its phase."""
    return max(session.active_at, session.since)


def is_expiring(session: Session) -> bool:
    """Return whether the session ended to be deleted as unused. If it stays, its deletion was interrupted."""
    return session.phase is Phase.ENDED and session.end_cause is EndCause.EXPIRED


def is_unused(session: Session, since: float) -> bool:
    """Return whether the session was not used since then and has no open work."""
    return not is_pending(session) and last_used_at(session) < since


def is_expired(family: Sequence[Session], since: float) -> bool:
    """Return whether no session of a conversation was used since then, and none has open work.

    A conversation whose deletion was interrupted has expired, unless a person resumed it.
    """
    interrupted = any(map(is_expiring, family))
    return bool(family) and all(
        is_unused(session, since) or (interrupted and session.phase is Phase.ENDED) for session in family
    )


def outlook(session: Session, keep_s: float | None) -> str:
    """Return when the conversation is deleted if it is not used again; empty without retention (`None`)."""
    if keep_s is None or is_pending(session):
        return ""
    at = datetime.fromtimestamp(last_used_at(session) + keep_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"If it is not used again, it is deleted after {at} (sessions.auto_prune)."
