"""Checks of request fields. Errors name the field."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from hermes.domain.errors import BadInputError

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))  # made once: `dumps` makes one each time


def short_text(value: Any, param: str, *, most: int) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= most or "\0" in value:
        refuse(param, f"{param} must be a text of 1 to {most} characters.")
    return value


def encode(value: Any, param: str) -> bytes:
    """Encode as canonical UTF-8 JSON that every store and model accepts."""
    encoded = _ENCODER.encode(value)
    if "\\u0000" in encoded.replace("\\\\", ""):
        refuse(param, f"{param} contains a NUL character.")
    try:
        return encoded.encode()
    except UnicodeEncodeError:
        refuse(
            param,
            f"{param} contains half a surrogate pair (an escape from \\ud800 to \\udfff without its other half).",
        )


def encode_free(value: Any) -> bytes:
    """Encode fields of any content, such as the schemas of tools."""
    return _ENCODER.encode(value).encode("utf-8", "replace")


def contradict(param: str, message: str) -> NoReturn:
    """Refuse a body whose fields are valid, but not together. No schema can express that."""
    raise BadInputError(message, param=param, code="unprocessable")


def refuse(param: str, message: str) -> NoReturn:
    raise BadInputError(message, param=param or None, code="invalid_value")
