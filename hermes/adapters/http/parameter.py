"""Checks of headers, path segments and query parameters."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias, TypeVar, get_args

from aiohttp import web

from hermes.domain.errors import BadInputError
from hermes.domain.ids import SESSION_ID_PATTERN, SessionId

T = TypeVar("T")
Flag: TypeAlias = Literal["0", "1", "false", "true"]
SESSION_HEADER = "X-Hermes-Session-Id"
KEY_HEADER = "X-Hermes-Session-Key"
SHOULD_RETRY_HEADER = "X-Should-Retry"
TURN_HEADER = "X-Hermes-Turn-Id"
COMPLETED_HEADER = "X-Hermes-Completed"
PARTIAL_HEADER = "X-Hermes-Partial"
ERROR_HEADER = "X-Hermes-Error"
REPLAY_HEADER = "X-Hermes-Idempotent-Replay"
CANCEL_HEADER = "X-Hermes-Cancel-On-Disconnect"
EVENTS_HEADER = "X-Hermes-Events"
IDEMPOTENCY_HEADER = "Idempotency-Key"
LAST_EVENT_HEADER = "Last-Event-ID"

_IDEMPOTENCY_PATTERN = r"[\x20-\x7e]{1,255}"


def session_id(text: str, param: str) -> SessionId:
    if not re.fullmatch(SESSION_ID_PATTERN, text):
        message = "A session id must be 1 to 128 letters, digits and _ . : - and start with a letter or digit."
        raise BadInputError(message, param=param, code="invalid_session_id")
    return SessionId(text)


def session_in_header(request: web.Request) -> SessionId | None:
    text = header(request, SESSION_HEADER)
    return None if text is None else session_id(text, SESSION_HEADER)


def session_in_path(request: web.Request) -> SessionId:
    return session_id(request.match_info["id"], "id")


def idempotency_key(request: web.Request) -> str | None:
    text = header(request, IDEMPOTENCY_HEADER)
    if text is not None and not re.fullmatch(_IDEMPOTENCY_PATTERN, text):
        message = "An Idempotency-Key must be 1 to 255 printable ASCII characters."
        raise BadInputError(message, param=IDEMPOTENCY_HEADER, code="invalid_idempotency_key")
    return text


def flag(request: web.Request, name: str) -> bool:
    text = header(request, name)
    if text is None:
        return False
    if text not in get_args(Flag):
        raise BadInputError(f"{name} must be one of {', '.join(get_args(Flag))}.", param=name, code="invalid_header")
    return text in ("1", "true")


def is_set(flag: Flag) -> bool:
    return flag in ("1", "true")


def header(request: web.Request, name: str) -> str | None:
    values = request.headers.getall(name, [])
    if len(values) > 1:
        raise BadInputError(f"{name} is given more than once.", param=name, code="invalid_header")
    return values[0] if values else None


def query(request: web.Request, kind: type[T]) -> T:
    """Return the query as a value of this type."""
    for name in request.query:
        if len(request.query.getall(name)) > 1:
            raise BadInputError(f"{name} is given more than once.", param=name, code="invalid_value")
    from hermes.adapters.http.schema import decode  # noqa: PLC0415 - imports msgspec, as in `service.py`

    return decode(dict(request.query), kind, texts=True)


def integer(request: web.Request, name: str, *, low: int, high: int) -> int | None:
    text = request.query.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"-?[0-9]{1,19}", text) or not low <= int(text) <= high:
        raise BadInputError(f"{name} must be a whole number from {low} to {high}.", param=name, code="invalid_value")
    return int(text)
