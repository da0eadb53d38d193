"""Editing of settings in the text of a configuration file. Comments and order are kept. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from hermes.config.schema import Value
from hermes.domain.errors import ConfigError

if TYPE_CHECKING:
    from hermes.config.file import Node

_INDENT = "  "


def with_settings(text: str, changes: Mapping[str, Value]) -> str:
    """Return the text with these settings (`section.key`) changed. Raises ConfigError for unusual YAML."""
    for name, value in changes.items():
        section, key = name.split(".")
        text = _with(text, section, key, written(value))
    return text


def with_entry(text: str, section: str, key: str, value: Mapping[str, Any]) -> str:
    """Return the text with a whole mapping as a key of this section. Raises ConfigError for unusual YAML."""
    return _with(text, section, key, json.dumps(value, ensure_ascii=False))


def without_setting(text: str, name: str) -> str:
    """Return the text without this setting or section. Other comments stay. Raises ConfigError for unusual YAML."""
    section, _, key = name.partition(".")
    found = _find(_root(text), section)
    if found is not None and not key:
        begin, end = _line_span(text, found)
        return text[:begin] + text[end:]
    if found is None or found[1].id != "mapping" or (setting := _find(found[1], key)) is None:
        return text
    begin, end = _flow_span(found[1], setting) if _is_flow(found[1]) else _line_span(text, setting)
    return text[:begin] + text[end:]


def written(value: Value) -> str:
    """Return a value as YAML. JSON is valid YAML."""
    return json.dumps(plain(value), ensure_ascii=False)


def plain(value: Value) -> bool | int | float | str | list[str]:
    """Return a value as JSON has it."""
    return list(value) if isinstance(value, tuple) else value


def _with(text: str, section: str, key: str, value: str) -> str:
    found = _find(_root(text), section)
    if found is None:
        before = text if not text or text.endswith("\n") else f"{text}\n"
        gap = "\n" if before.strip() else ""
        return f"{before}{gap}{section}:\n{_INDENT}{key}: {value}\n"
    name, body = found
    if body.id == "scalar" and not body.value:  # an empty section
        return _after_line(text, name.end_mark.index, f"{_INDENT}{key}: {value}\n")
    if body.id != "mapping":
        raise ConfigError(f"{section} is not a section with keys; edit it by hand")
    if (setting := _find(body, key)) is not None:
        node = setting[1]
        lead = "" if text[node.start_mark.index - 1 : node.start_mark.index].isspace() else " "
        return text[: node.start_mark.index] + lead + value + text[_end(node) :]
    if _is_flow(body):
        begin = body.start_mark.index + 1
        return text[:begin] + f"{key}: {value}{', ' if body.value else ''}" + text[begin:]
    first = body.value[0][0].start_mark
    return _after_line(text, name.end_mark.index, f"{' ' * first.column}{key}: {value}\n")


def _root(text: str) -> Node | None:
    """Return the mapping of sections; None for an empty file. Raises ConfigError for anything else."""
    root = _compose(text)
    if root is not None and (root.id != "mapping" or _is_flow(root)):
        raise ConfigError("the configuration file does not consist of sections with keys; edit it by hand")
    return root


def _compose(text: str) -> Node | None:
    import yaml  # noqa: PLC0415 - slow

    try:
        root = cast("Node | None", yaml.compose(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ConfigError("the configuration file is not valid YAML; `hermes config check` reports where") from error
    return root


def _find(mapping: Node | None, name: str) -> tuple[Any, Any] | None:
    pairs = mapping.value if mapping is not None else ()
    return next(((key, value) for key, value in pairs if key.value == name), None)


def _is_flow(node: Any) -> bool:
    return bool(node.flow_style)


def _end(node: Any) -> int:
    """Return the end of a node. The mark of a block list would include comments up to the next key."""
    if node.id == "scalar" or _is_flow(node) or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


def _line_span(text: str, pair: tuple[Any, Any]) -> tuple[int, int]:
    """Return begin and end of the lines of a key and its value."""
    key, value = pair
    begin, end = text.rfind("\n", 0, key.start_mark.index) + 1, max(_end(value), key.end_mark.index)
    if text[end - 1] == "\n":  # a block text ends after its last line
        return begin, end
    newline = text.find("\n", end)
    return begin, len(text) if newline < 0 else newline + 1


def _flow_span(mapping: Any, pair: tuple[Any, Any]) -> tuple[int, int]:
    """Return begin and end of a key and its value within braces, with one comma."""
    place = mapping.value.index(pair)
    if place + 1 < len(mapping.value):
        return pair[0].start_mark.index, mapping.value[place + 1][0].start_mark.index
    begin = mapping.value[place - 1][1].end_mark.index if place else pair[0].start_mark.index
    return begin, pair[1].end_mark.index


def _after_line(text: str, index: int, line: str) -> str:
    end = text.find("\n", index)
    if end < 0:
        return f"{text}\n{line}"
    return text[: end + 1] + line + text[end + 1 :]
