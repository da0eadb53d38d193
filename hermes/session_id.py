"""The ids of new sessions: when they began, and eight digits by chance."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

from hermes.types import SessionId


def new_session_id(now: float) -> SessionId:
    return SessionId(f"{datetime.fromtimestamp(now, UTC):%Y%m%d_%H%M%S}_{secrets.token_hex(4)}")
