"""Entries: settings that are mappings, such as hooks and webhook routes. Each is kept as the JSON of its keys. Pure.

YAML writes them as a mapping by name, or as a list. A name with a list stands for several entries of that name.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

NAME = "name"  # key that holds the name of an entry
_MAX_DEPTH = 12
_TAG = "tag:yaml.org,2002:"
_TRUE, _FALSE = {"true", "yes", "on"}, {"false", "no", "off"}


def plain_node(node: Any, depth: int = 0) -> Any:
    """Return a composed YAML node as plain values. Raises ValueError."""
    if depth > _MAX_DEPTH:
        raise ValueError("is nested too deeply")
    if node.id == "mapping":
        found = {}
        for key, value in node.value:
            if key.id != "scalar":
                raise ValueError("a name must be a word")
            if key.value in found:
                raise ValueError(f"{str(key.value)[:40]!r} is set twice")
            found[str(key.value)] = plain_node(value, depth + 1)
        return found
    if node.id == "sequence":
        return [plain_node(each, depth + 1) for each in node.value]
    return _scalar(str(node.tag).removeprefix(_TAG), str(node.value))


def _scalar(tag: str, text: str) -> Any:
    if tag == "bool" and text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    if tag == "null":
        return None
    try:
        return int(text) if tag == "int" else float(text) if tag == "float" else text
    except ValueError:
        return text


def entries_of(value: Any, name: str = "") -> tuple[str, ...]:
    """Return the entries in a value, as JSON texts. Raises ValueError."""
    if name:
        value = {name: value}
    if isinstance(value, list):
        return tuple(_text(each) for each in value)
    if not isinstance(value, dict):
        raise ValueError("expected a mapping by name, or a list of mappings")  # noqa: TRY004 - as every mistake of a setting
    found = []
    for key, members in value.items():
        for each in members if isinstance(members, list) else [members]:
            if not isinstance(each, dict):
                raise ValueError(f"{key[:40]!r}: expected keys below it")  # noqa: TRY004 - as above
            found.append(_text({NAME: key, **each}))
    return tuple(found)


def _text(value: Any) -> str:
    if not isinstance(value, dict):
        raise ValueError("expected a list of mappings")  # noqa: TRY004 - as every mistake of a setting
    return json.dumps(value, ensure_ascii=True)


def read_entry(text: str, known: Collection[str]) -> dict[str, Any]:
    """Return the keys of an entry. Raises ValueError for text that is not one, and for unknown keys."""
    try:
        found = json.loads(text)
    except ValueError:
        raise ValueError("must be the JSON of a mapping") from None
    if not isinstance(found, dict):
        raise ValueError("must be a mapping")  # noqa: TRY004 - as every mistake of a setting
    for key in found:
        if key not in known:
            from difflib import get_close_matches  # noqa: PLC0415 - only for mistakes

            near = get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; known keys: {', '.join(sorted(known))}"
            raise ValueError(f"{str(found.get(NAME, 'entry'))[:40]}: unknown key {key[:40]!r}{hint}")
    return found


class EntryFields:
    """Keys of an entry, read with their types. Every error names the entry."""

    def __init__(self, fields: Mapping[str, Any], what: str) -> None:
        self._fields = fields
        self._what = what

    def fail(self, problem: str) -> ValueError:
        return ValueError(f"{self._what}: {problem}")

    def text(self, key: str, default: str = "", *, required: bool = False) -> str:
        value = self._fields.get(key, default)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.fail(f"{key} must be text")
        if required and not str(value).strip():
            raise self.fail(f"{key} is missing")
        return str(value)

    def flag(self, key: str, default: bool = False) -> bool:
        value = self._fields.get(key, default)
        if not isinstance(value, bool):
            raise self.fail(f"{key} must be true or false")
        return value

    def number(self, key: str, default: float, *, least: float, most: float) -> float:
        value = self._fields.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self.fail(f"{key} must be a number from {least:g} to {most:g}")
        return float(value)

    def texts(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return a list of texts. A single text is a list of one."""
        value = self._fields.get(key, list(default))
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.fail(f"{key} must be a list of texts")
        return tuple(value)

    def choice(self, key: str, default: str, choices: Collection[str]) -> str:
        value = self.text(key, default)
        if value not in choices:
            raise self.fail(f"{key} must be one of {', '.join(choices)}, not {value[:40]!r}")
        return value


def complaint_by(parse: Callable[[str], object]) -> Callable[[str], str]:
    """Return the check of a setting whose entries this function parses."""

    def complaint(text: str) -> str:
        try:
            parse(text)
        except ValueError as error:
            return str(error)
        return ""

    return complaint
