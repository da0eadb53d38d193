"""Derive a JSON schema from a typed signature, and check a model's arguments against it.

Supported types: str, int, float, bool, Literal, list, dict with str keys, and `| None`. `Annotated[type, "text"]`
describes a parameter. The first parameter is the context and not in the schema. Numbers and booleans sent as text
("5") are converted; any other mismatch is reported to the model.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

_JSON_TYPES: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_BOOLEANS = {"true": True, "false": False}


class ArgumentError(ValueError):
    """An argument is missing, unknown or of the wrong type."""


def parameters_of(function: Callable[..., Any]) -> dict[str, Any]:
    hints = get_type_hints(function, include_extras=True)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        properties[parameter.name] = _schema(hints[parameter.name])
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
        elif parameter.default not in (None, "", ()):
            properties[parameter.name]["default"] = parameter.default
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _schema(hint: Any) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return {**_schema(arguments[0]), "description": arguments[1]}
    if origin in (Union, types.UnionType):
        [inner] = [each for each in arguments if each is not type(None)]
        return _schema(inner)
    if origin is Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1])}
    return {"type": _JSON_TYPES[hint]}


def check_arguments(schema: Mapping[str, Any], arguments: Any) -> dict[str, Any]:
    """Return the checked arguments. A null counts as absent."""
    if not isinstance(arguments, dict):
        raise ArgumentError("the arguments must be a JSON object")
    properties = schema["properties"]
    given = {name: value for name, value in arguments.items() if value is not None}
    if unknown := sorted(set(given) - set(properties)):
        raise ArgumentError(f"unknown argument {unknown[0]!r}; known are {', '.join(properties) or 'none'}")
    if missing := [name for name in schema["required"] if name not in given]:
        raise ArgumentError(f"the argument {missing[0]!r} is missing")
    return {name: _checked(properties[name], value, name) for name, value in given.items()}


def _checked(schema: Mapping[str, Any], value: Any, where: str) -> Any:
    match schema["type"]:
        case "string":
            fits = isinstance(value, str) and value in schema.get("enum", (value,))
        case "boolean":
            value = _BOOLEANS.get(value, value) if isinstance(value, str) else value
            fits = isinstance(value, bool)
        case "integer" | "number" as kind:
            value = _number(value, whole=kind == "integer")
            fits = value is not None
        case "array":
            fits = isinstance(value, list)
            value = fits and [_checked(schema["items"], each, f"{where}[{n}]") for n, each in enumerate(value)]
        case _:
            fits = isinstance(value, dict)
            inner = schema["additionalProperties"]
            value = fits and {name: _checked(inner, each, f"{where}.{name}") for name, each in value.items()}
    if not fits:
        expected = f"one of {', '.join(schema['enum'])}" if "enum" in schema else f"of type {schema['type']}"
        raise ArgumentError(f"the argument {where!r} must be {expected}")
    return value


def _number(value: Any, *, whole: bool) -> int | float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 2**53:
        return None
    if not whole:
        return float(value)
    return int(value) if value == int(value) else None
