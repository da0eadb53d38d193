"""The ids of sessions: what can be one. A new one says when it began, and has eight digits by chance."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

from hermes.domain.types import SessionId

SESSION_ID_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}"  # clients may bring their own


def new_session_id(now: float) -> SessionId:
    return SessionId(f"{datetime.fromtimestamp(now, UTC):%Y%m%d_%H%M%S}_{secrets.token_hex(4)}")
