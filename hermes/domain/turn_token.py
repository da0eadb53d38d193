"""Ids of responses and runs: a session and a turn in one opaque word, so that the journal alone answers for them."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from hermes.domain.session_id import SESSION_ID_PATTERN
from hermes.domain.types import SessionId, TurnId
from hermes.domain.values import dataclass

RESPONSE: Final = "resp_"
RUN: Final = "run_"
_MAX_CHARS: Final = 512
_TURN: Final = r"[\x21-\x7e]{1,128}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnToken:
    session: SessionId  # where the turn was accepted
    turn: TurnId

    def text(self, kind: str) -> str:
        raw = f"{self.session}\0{self.turn}".encode()
        return kind + base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode_token(text: str, kind: str) -> TurnToken | None:
    """None for anything that we never made."""
    token = _decode(text.removeprefix(kind)) if text.startswith(kind) and len(text) <= _MAX_CHARS else None
    return token if token is not None and token.text(kind) == text else None


def _decode(word: str) -> TurnToken | None:
    try:
        raw = base64.urlsafe_b64decode(word + "=" * (-len(word) % 4)).decode("ascii")
    except (binascii.Error, ValueError):  # no base64, or nothing that we ever encoded
        return None
    session, _, turn = raw.partition("\0")
    if not re.fullmatch(SESSION_ID_PATTERN, session) or not re.fullmatch(_TURN, turn):
        return None
    return TurnToken(session=SessionId(session), turn=TurnId(turn))
