"""Retention of conversations: which ones are old enough to be deleted. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.domain.session.state import Session, is_pending


def last_used_at(session: Session) -> float:
    """Return when a person last wrote, or the session last changed its phase."""
    return max(session.active_at, session.since)


def is_expired(family: Sequence[Session], now: float, keep_s: float) -> bool:
    """Return whether no session of a conversation was used for that long, and none has open work."""
    return bool(family) and all(
        not is_pending(session) and now - last_used_at(session) > keep_s for session in family
    )
