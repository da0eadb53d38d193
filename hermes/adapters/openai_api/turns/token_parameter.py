"""Token of a response or a run in a request."""

from __future__ import annotations

from hermes.adapters.http.problem import ProblemError, refusal
from hermes.domain.ids import RESPONSE, TurnToken, decode_token


def read_token(text: str, kind: str) -> TurnToken:
    token = decode_token(text, kind)
    if token is None:
        raise not_found(text, kind)
    return token


def not_found(text: str, kind: str) -> ProblemError:
    what = "response" if kind == RESPONSE else "run"
    return refusal(404, f"{what}_not_found", f"There is no {what} {text[:80]!r}.")
