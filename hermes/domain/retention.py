"""Retention of conversations: which ones are old enough to be deleted. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from hermes.domain.session.state import Session, is_pending


def last_used_at(session: Session) -> float:
    """Return when a person last wrote, or the session last changed its phase."""
    return max(session.active_at, session.since)


def is_expired(family: Sequence[Session], now: float, keep_s: float) -> bool:
    """Return whether no session of a conversation was used for that long, and none has open work."""
    return bool(family) and all(
        not is_pending(session) and now - last_used_at(session) > keep_s for session in family
    )


def outlook(session: Session, keep_s: float | None) -> str:
    """Return when the conversation is deleted if it is not used again; empty without retention (`None`)."""
    if keep_s is None or is_pending(session):
        return ""
    at = datetime.fromtimestamp(last_used_at(session) + keep_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"If it is not used again, it is deleted after {at} (sessions.auto_prune)."
