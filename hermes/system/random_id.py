"""Random ids and markers. The pure domain takes them as arguments."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

from hermes.domain.ids import SessionId


def new_session_id(now: float) -> SessionId:
    """Return a session id of the start time and eight random hex digits."""
    return SessionId(f"{datetime.fromtimestamp(now, UTC):%Y%m%d_%H%M%S}_{secrets.token_hex(4)}")


def new_marker() -> str:
    """Return the random marker of a fence."""
    return secrets.token_hex(6)
