"""Signature check of requests from Slack."""

from __future__ import annotations

from collections.abc import Iterable

from slack_sdk.signature import Clock, SignatureVerifier

from hermes.config.secret import Secret


class _FixedClock(Clock):
    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        return self._now


def is_signed(body: bytes, *, signed_at: str, signature: str, secrets: Iterable[Secret], now: float) -> bool:
    """Return whether one of the secrets signed the request within five minutes of `now`.

    The comparison takes constant time, and every secret is tried.
    """
    clock = _FixedClock(now)
    try:
        return any(
            [SignatureVerifier(each.reveal(), clock).is_valid(body, signed_at, signature) for each in secrets]  # noqa: C419
        )
    except (TypeError, ValueError):  # a timestamp that is not a number, a signature or a body that is not text
        return False
