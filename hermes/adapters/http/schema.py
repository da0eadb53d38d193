"""Request bodies as types. One type gives the parser, the error text and the OpenAPI schema.

A refused body names the place in `param`, and the text says what is allowed there. Both come from the type.
"""

from __future__ import annotations

import atexit
import gc
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from hermes.domain.errors import BadInputError
from hermes.domain.ids import SESSION_ID_PATTERN

# msgspec 0.22 crashes at times when the interpreter collects Struct types at its exit. Frozen ones are not collected.
atexit.register(gc.freeze)

JsonSchema: TypeAlias = dict[str, Any]
T = TypeVar("T")

_STORABLE: Final = r"^[^\u0000]*$"
_SESSION_ID: Final = "1 to 128 letters, digits and _ . : - that start with a letter or digit"
REF: Final = "#/components/schemas/{name}"

Text: TypeAlias = Annotated[str, Meta(pattern=_STORABLE)]
FilledText: TypeAlias = Annotated[str, Meta(pattern=_STORABLE, min_length=1)]
# Python's `$` also matches before a newline at the end; in JSON Schema it does not.
SessionIdText: TypeAlias = Annotated[str, Meta(pattern=rf"^{SESSION_ID_PATTERN}$(?!\n)", description=_SESSION_ID)]
AbsolutePath: TypeAlias = Annotated[str, Meta(pattern=r"^/[^\u0000]*$", description="an absolute path")]
Metadata: TypeAlias = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]],
    Meta(
        max_length=16,
        description="an object of at most 16 strings of at most 512 characters, with names of at most 64",
    ),
]


class Fields(msgspec.Struct, omit_defaults=True):
    """Base of request bodies. Unknown fields are allowed; `null` is the same as a field that is not there."""


def decode(value: Any, kind: type[T], *, texts: bool = False) -> T:
    """Convert a parsed JSON value. Raises BadInputError with the place and what is allowed there.

    `texts`: numbers are given as text, as in a query.
    """
    try:
        return msgspec.convert(value, kind, strict=not texts)
    except msgspec.ValidationError as error:
        raise _refusal(str(error), value, kind) from None


def components(*kinds: Any) -> dict[str, JsonSchema]:
    """Return the JSON schemas of types, by name."""
    _, found = msgspec.json.schema_components(kinds, ref_template=REF)
    return found


def schema_of(kind: Any) -> JsonSchema:
    """Return the schema of a type, or the reference to a named one."""
    if isinstance(kind, str):
        return {"$ref": REF.format(name=kind)}
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=REF)
    return schema


def inline_schema(kind: type[msgspec.Struct]) -> JsonSchema:
    """Return the whole schema of a type, without a reference to the type itself."""
    return components(kind)[kind.__name__]


def unknown_fields(body: Any, kind: type[msgspec.Struct]) -> list[str]:
    """Return the names of fields that the type does not have."""
    return [name for name in body if name not in _names(kind)] if isinstance(body, dict) else []


@cache
def _names(kind: Any) -> frozenset[str]:
    return frozenset(kind.__struct_encode_fields__)


# ---------------------------------------------------------------- refusals

_PLACE: Final = re.compile(r"(?P<what>.*?)(?: - at (?:`key` in )?`\$(?P<path>.*)`)?", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(.*)`")
_TAGS: Final = ("type", "role")
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


def _refusal(problem: str, value: Any, kind: type[Any]) -> BadInputError:
    found = _PLACE.fullmatch(problem)
    assert found is not None
    path = found["path"] or ""
    missing = _MISSING.fullmatch(found["what"])
    if missing:
        path += f".{missing[1]}"
    param = path.removeprefix(".").removesuffix("[...]")
    allowed = _either(list(dict.fromkeys(words for each in _at(kind, value, path) for words in _words(each))))
    if not param:
        return BadInputError("The body must be a JSON object.", code="invalid_value")
    start = f"{param} is missing: it" if missing else param
    return BadInputError(f"{start} must be {allowed}.", param=param, code="invalid_value")


@cache
def _schemas(kind: Any) -> tuple[JsonSchema, Mapping[str, JsonSchema]]:
    (top,), found = msgspec.json.schema_components([kind], ref_template=REF)
    return top, found


def _at(kind: Any, value: Any, path: str) -> list[JsonSchema]:
    """Return the schemas of the place that a path leads to. The value decides between alternatives."""
    top, found = _schemas(kind)
    here = list(_alternatives(top, found))
    for step in _STEP.finditer(path):
        if step[1] is not None:
            inner = [each["properties"][step[1]] for each in _fitting(here, value) if step[1] in each["properties"]]
            value = value.get(step[1]) if isinstance(value, dict) else None
        elif step[2].isdigit():
            inner = [each["items"] for each in here if isinstance(each.get("items"), dict)]
            value = value[int(step[2])] if isinstance(value, list) else None
        else:
            inner = []  # a key or value of a map: describe the map
            value = None
        here = [each for schema in inner for each in _alternatives(schema, found)] or here
    return here


def _fitting(schemas: list[JsonSchema], value: Any) -> list[JsonSchema]:
    """Return the object schemas whose tag, `type` or `role`, is the value's; all of them if none is."""
    objects = [each for each in schemas if "properties" in each]
    given = value if isinstance(value, dict) else {}
    return [each for each in objects if any(_has_tag(each, name, given.get(name)) for name in _TAGS)] or objects


def _has_tag(schema: JsonSchema, name: str, value: Any) -> bool:
    return bool(schema["properties"].get(name, {}).get("enum") == [value])


def _alternatives(schema: JsonSchema, found: Mapping[str, JsonSchema]) -> Iterator[JsonSchema]:
    if "$ref" in schema:
        schema = found[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        for each in schema["anyOf"]:
            yield from _alternatives(each, found)
    else:
        yield schema


def _either(words: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""


def _words(schema: JsonSchema) -> Iterator[str]:
    """Describe what a schema allows. `null` is left out: it is the same as a field that is not there."""
    if "enum" in schema:
        yield f"one of {', '.join(map(str, schema['enum']))}" if len(schema["enum"]) > 1 else str(schema["enum"][0])
        return
    match schema.get("type"):
        case "string":
            yield schema.get("description") or f"a string{_size(schema, 'Length', 'characters')}{_storable(schema)}"
        case "integer" if schema.get("minimum") == schema.get("maximum") is not None:
            yield str(schema["minimum"])
        case "integer":
            yield f"a whole number{_range(schema)}"
        case "number":
            yield f"a number{_range(schema)}"
        case "boolean":
            yield "true or false"
        case "array":
            yield f"a list{_size(schema, 'Items', 'items')}"
        case "object":
            yield schema.get("description", "an object") if "properties" not in schema else "an object"
        case "null" if "description" in schema:
            yield schema["description"]
        case _:
            pass


def _range(schema: JsonSchema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None and high is None:
        return ""
    return f" from {low}" + (f" to {high}" if high is not None else "")


def _size(schema: JsonSchema, what: str, unit: str) -> str:
    low, high = schema.get(f"min{what}"), schema.get(f"max{what}")
    if high is not None:
        return f" of {low or 0} to {high} {unit}"
    return f" of at least {low} {unit.removesuffix('s') if low == 1 else unit}" if low else ""


def _storable(schema: JsonSchema) -> str:
    return " without NUL" if schema.get("pattern") == _STORABLE else ""
