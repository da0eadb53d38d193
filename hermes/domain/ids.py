"""Ids and positions of sessions, turns and records, and the tokens and keys that are made from them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import Final, NewType

from hermes.domain.values import dataclass

SessionId = NewType("SessionId", str)
SessionKey = NewType("SessionKey", str)
TurnId = NewType("TurnId", str)
InboundKey = NewType("InboundKey", str)  # "<platform>:<the platform's own id of an update>"
Epoch = NewType("Epoch", int)  # grows by one with each daemon that owns the store
Seq = NewType("Seq", int)  # position of a record in its session's log, from 0

SESSION_ID_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}"  # clients may choose their own ids
RESPONSE: Final = "resp_"  # kinds of tokens
RUN: Final = "run_"
_MAX_CHARS: Final = 512
_TURN: Final = r"[\x21-\x7e]{1,128}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnToken:
    """Session and turn in one opaque word: the id of a response or a run. No table of such ids is needed."""

    session: SessionId  # where the turn was accepted
    turn: TurnId

    def text(self, kind: str) -> str:
        raw = f"{self.session}\0{self.turn}".encode()
        return kind + base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode_token(text: str, kind: str) -> TurnToken | None:
    """Return the token of that kind in a text; None for any text that `TurnToken.text` does not make."""
    token = _decode(text.removeprefix(kind)) if text.startswith(kind) and len(text) <= _MAX_CHARS else None
    return token if token is not None and token.text(kind) == text else None


def _decode(word: str) -> TurnToken | None:
    try:
        raw = base64.urlsafe_b64decode(word + "=" * (-len(word) % 4)).decode("ascii")
    except (binascii.Error, ValueError):  # not base64, or not ASCII
        return None
    session, _, turn = raw.partition("\0")
    if not re.fullmatch(SESSION_ID_PATTERN, session) or not re.fullmatch(_TURN, turn):
        return None
    return TurnToken(session=SessionId(session), turn=TurnId(turn))


def inbound_of(key: str) -> InboundKey:
    """Return the inbound key of a client's Idempotency-Key. All platforms share it: a retry is the same turn."""
    return InboundKey(f"api:{hashlib.sha256(key.encode()).hexdigest()}")
