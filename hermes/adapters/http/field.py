"""Values of a request's fields, checked one by one; what is wrong is said with the field's own name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from hermes.domain.errors import BadInputError


def given(body: Any) -> dict[str, Any]:
    """The fields of a body. null means "not given"."""
    if not isinstance(body, dict):
        refuse("", "The body is not a JSON object.")
    return {name: value for name, value in body.items() if value is not None}


def text(value: Any, param: str) -> str:
    if not isinstance(value, str):
        refuse(param, f"{param} is a string.")
    return value


def filled_text(value: Any, param: str) -> str:
    if not isinstance(value, str) or not value:
        refuse(param, f"{param} is a string that is not empty.")
    return value


def short_text(value: Any, param: str, *, most: int) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= most or "\0" in value:
        refuse(param, f"{param} is a text of 1 to {most} characters.")
    return value


def boolean(value: Any, param: str) -> bool:
    if not isinstance(value, bool):
        refuse(param, f"{param} is true or false.")
    return value


def number(low: float, high: float) -> Callable[[Any, str], float]:
    def check(value: Any, param: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            refuse(param, f"{param} is a number from {low:g} to {high:g}.")
        return value

    return check


def whole(low: int, high: int) -> Callable[[Any, str], int]:
    def check(value: Any, param: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            refuse(param, f"{param} is a whole number from {low} to {high}.")
        return value

    return check


def metadata(value: Any, param: str) -> Mapping[str, str]:
    """What a client keeps with its request and gets back: 16 pairs, names of 64 and values of 512 characters."""
    fits = isinstance(value, dict) and len(value) <= 16
    if not fits or not all(len(k) <= 64 and isinstance(v, str) and len(v) <= 512 for k, v in value.items()):
        refuse(param, f"{param} is an object of at most 16 strings of at most 512 characters, with names of 64.")
    checked: Mapping[str, str] = value
    return checked


def encode(value: Any, param: str) -> bytes:
    """Canonical UTF-8 JSON, of text that every store and every model can take."""
    encoded = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if "\\u0000" in encoded.replace("\\\\", ""):
        refuse(param, f"{param} holds a NUL character.")
    try:
        return encoded.encode()
    except UnicodeEncodeError:
        refuse(
            param, f"{param} holds half a surrogate pair (an escape from \\ud800 to \\udfff without its other half)."
        )


def refuse(param: str, message: str) -> NoReturn:
    raise BadInputError(message, param=param or None, code="invalid_value")
