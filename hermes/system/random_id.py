"""Random ids and markers. The pure domain takes them as arguments."""

from __future__ import annotations

import secrets
import time

from hermes.domain.ids import SessionId, TurnId

_TURN_BYTES = 12
_TURNS_AT_ONCE = 64  # a system call for each id would cost as much as 20 of them


def new_session_id(now: float) -> SessionId:
    """Return a session id of the start time and eight random hex digits."""
    return SessionId(f"{time.strftime('%Y%m%d_%H%M%S', time.gmtime(now))}_{secrets.token_hex(4)}")


def new_marker() -> str:
    """Return the random marker of a fence."""
    return secrets.token_hex(6)


class RandomIds:
    """Turn ids. Their random bytes are taken from the system for many of them together."""

    def __init__(self) -> None:
        self._unused = b""

    def turn(self) -> TurnId:
        if not self._unused:
            self._unused = secrets.token_bytes(_TURN_BYTES * _TURNS_AT_ONCE)
        taken, self._unused = self._unused[:_TURN_BYTES], self._unused[_TURN_BYTES:]
        return TurnId(taken.hex())
