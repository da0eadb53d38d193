"""Checks of request fields. Errors name the field."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from hermes.domain.errors import BadInputError


def given(body: Any) -> dict[str, Any]:
    """Return the fields of a body that are not null."""
    if not isinstance(body, dict):
        refuse("", "The body must be a JSON object.")
    return {name: value for name, value in body.items() if value is not None}


def text(value: Any, param: str) -> str:
    if not isinstance(value, str):
        refuse(param, f"{param} must be a string.")
    return value


def filled_text(value: Any, param: str) -> str:
    if not isinstance(value, str) or not value:
        refuse(param, f"{param} must be a string that is not empty.")
    return value


def short_text(value: Any, param: str, *, most: int) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= most or "\0" in value:
        refuse(param, f"{param} must be a text of 1 to {most} characters.")
    return value


def boolean(value: Any, param: str) -> bool:
    if not isinstance(value, bool):
        refuse(param, f"{param} must be true or false.")
    return value


def number(low: float, high: float) -> Callable[[Any, str], float]:
    def check(value: Any, param: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            refuse(param, f"{param} must be a number from {low:g} to {high:g}.")
        return value

    return check


def whole(low: int, high: int) -> Callable[[Any, str], int]:
    def check(value: Any, param: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            refuse(param, f"{param} must be a whole number from {low} to {high}.")
        return value

    return check


def metadata(value: Any, param: str) -> Mapping[str, str]:
    """Check client metadata: 16 pairs, names of 64 and values of 512 characters."""
    fits = isinstance(value, dict) and len(value) <= 16
    if not fits or not all(len(k) <= 64 and isinstance(v, str) and len(v) <= 512 for k, v in value.items()):
        refuse(param, f"{param} must be an object of at most 16 strings of at most 512 characters, with names of 64.")
    checked: Mapping[str, str] = value
    return checked


def encode(value: Any, param: str) -> bytes:
    """Encode as canonical UTF-8 JSON that every store and model accepts."""
    encoded = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if "\\u0000" in encoded.replace("\\\\", ""):
        refuse(param, f"{param} contains a NUL character.")
    try:
        return encoded.encode()
    except UnicodeEncodeError:
        refuse(
            param,
            f"{param} contains half a surrogate pair (an escape from \\ud800 to \\udfff without its other half).",
        )


def refuse(param: str, message: str) -> NoReturn:
    raise BadInputError(message, param=param or None, code="invalid_value")
