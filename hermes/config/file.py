"""Reader of the configuration file: settings, each with its line and column.

The YAML is composed, not constructed, so that every problem has a place. All problems are collected, unless the text
is not YAML at all. Values of unknown keys are never repeated in a message: they may be secrets.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol, cast

from hermes.config.events.entries import entries_of, plain_node
from hermes.config.mcp import mcp_servers
from hermes.config.mcp.mcp_servers import SECTION as MCP_SERVERS
from hermes.config.schema import OPEN_SECTIONS, RETIRED, Value
from hermes.config.settings import SECTIONS, SETTINGS, Setting
from hermes.domain.values import dataclass
from hermes.system.regular_file import read_regular_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import yaml

    class Node(Protocol):
        """Node of the YAML composer, whose own types are incomplete."""

        id: str
        tag: str
        value: Any
        style: str | None  # of a scalar
        start_mark: yaml.Mark


EMPTY = "config.yaml is empty; using defaults"
_MAX_SIZE = 262_144  # bytes
_MAX_LINE = 10_000  # characters
# Messages of the parser for wrong indentation.
_SIGNS_OF_INDENTATION = ("expected <block end>", "mapping values are not allowed here")
_TAG = "tag:yaml.org,2002:"
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9_]{0,30})")
_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9_]{0,30})(\.[0-9]{0,30})?([eE][+-]?[0-9]{1,3})?")
_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "text", tuple: "a list of texts"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundValue:
    value: Value
    where: str


def did_you_mean(word: str, known: Iterable[str]) -> str:
    import difflib  # noqa: PLC0415 - only for mistakes

    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def parse_number(setting: Setting, text: str) -> int | float:
    """Return a plain decimal number. Octal, sexagesimal, infinity and NaN of YAML are refused."""
    if type(setting.default) is int:
        if _WHOLE.fullmatch(text):
            return int(text)
    elif _NUMBER.fullmatch(text):
        return float(text)
    raise ValueError(f"expected {expected(setting)}, found {_short(text)}")


def expected(setting: Setting) -> str:
    return _NAMES[type(setting.default)]


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}...")


def is_empty(path: Path) -> bool:
    """Return whether the file exists and is empty: an editor or a full disk may have cut it off."""
    try:
        return not read_regular_file(path, max_bytes=_MAX_SIZE).strip()
    except OSError:
        return False


def read_config_file(path: Path) -> tuple[dict[str, FoundValue], list[str]]:
    """Return the settings of the file, and its problems. A missing file has neither."""
    try:
        raw = read_regular_file(path, max_bytes=_MAX_SIZE)
    except FileNotFoundError:
        return {}, []
    except OSError as error:
        return {}, [f"{path}: cannot be read: {error.strerror}"]
    return read_config_text(raw, path)


def read_config_text(raw: bytes, path: Path) -> tuple[dict[str, FoundValue], list[str]]:
    """Return the settings of a text that is, or is to become, the content of this file; and its problems."""
    reader = _Reader(path)
    text = reader.decode(raw)
    root = reader.compose(text) if text is not None else None
    if root is not None:
        reader.read_root(root)
    return reader.found, reader.problems


class _Reader:
    def __init__(self, path: Path) -> None:
        self.found: dict[str, FoundValue] = {}
        self.problems: list[str] = []
        self._path = path

    # ------------------------------------------------------------ text

    def decode(self, raw: bytes) -> str | None:
        if len(raw) > _MAX_SIZE:
            self.problems.append(self._long_line(raw) or f"{self._path}: is larger than {_MAX_SIZE} bytes")
            return None
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            before = raw[: error.start]
            line, column = before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1
            self.problems.append(f"{self._path}:{line}:{column}: is not UTF-8 (byte 0x{raw[error.start]:02x})")
            return None
        if problem := self._long_line(raw):
            self.problems.append(problem)
            return None
        return text

    def _long_line(self, raw: bytes) -> str:
        for number, line in enumerate(raw.split(b"\n"), 1):
            if len(line) > _MAX_LINE:
                return f"{self._path}:{number}:{_MAX_LINE + 1}: the line is longer than {_MAX_LINE} bytes"
        return ""

    def compose(self, text: str) -> Node | None:
        import yaml  # noqa: PLC0415 - slow, and most homes have no file

        if bad := yaml.reader.Reader.NON_PRINTABLE.search(text):
            where = self._at(text.count("\n", 0, bad.start()), bad.start() - (text.rfind("\n", 0, bad.start()) + 1))
            self.problems.append(f"{where}: the character U+{ord(bad.group()):04X} is not allowed")
            return None
        try:
            root = cast("Node | None", yaml.compose(text, Loader=yaml.SafeLoader))
        except yaml.MarkedYAMLError as error:
            self._complain_yaml(error, text.split("\n"))
        except RecursionError:
            self.problems.append(f"{self._path}:1:1: is nested too deeply; settings are section: key: value")
        else:
            return root
        return None

    def _complain_yaml(self, error: yaml.MarkedYAMLError, lines: list[str]) -> None:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark else (0, 0)
        content = lines[line] if line < len(lines) else ""
        indent = content[: len(content) - len(content.lstrip())]
        problem = error.problem or str(error)
        if "\t" in indent:
            text, column = "YAML does not allow tabs as indentation; use spaces", indent.index("\t")
        elif r"'\t'" in problem:
            text = "YAML does not allow a tab here; use spaces"
        elif any(sign in problem for sign in _SIGNS_OF_INDENTATION):
            text = "is not valid YAML: check the indentation here and in the lines above"
        else:  # some messages of the parser start in the context
            text = f"is not valid YAML: {f'{error.context} ' if problem.startswith('but') else ''}{problem}"
        self.problems.append(f"{self._at(line, column)}: {text}")

    def _at(self, line: int, column: int) -> str:
        return f"{self._path}:{line + 1}:{column + 1}"

    def _where(self, node: Node) -> str:
        return self._at(node.start_mark.line, node.start_mark.column)

    def _complain(self, node: Node, text: str) -> None:
        self.problems.append(f"{self._where(node)}: {text}")

    # ------------------------------------------------------------ nodes

    def read_root(self, root: Node) -> None:
        if _tag(root) == "null":
            return
        if root.id != "mapping":
            self._complain(root, f"expected sections like `api:`, found {_describe(root)}")
            return
        for key, node in self._pairs(root):
            self._read_section(key, node)

    def _read_section(self, key: Node, node: Node) -> None:
        section = key.value
        if section == MCP_SERVERS:
            self._read_servers(key, node)
        elif section not in SECTIONS:
            self._complain(key, f"unknown section {_short(section)}{_suggestion(section, node)}")
        elif node.id == "mapping":
            others = []
            for inner, value in self._pairs(node):
                if section in OPEN_SECTIONS and f"{section}.{inner.value}" not in SETTINGS:
                    others.append((inner, value))
                else:
                    self._read_setting(section, inner, value)
            for inner, value in others:
                self._read_entry(SETTINGS[OPEN_SECTIONS[section]], inner, value)
        elif _tag(node) != "null":  # a section with only comments is valid
            self._complain(node, f"{section}: expected settings below it, found {_describe(node)}")

    def _read_servers(self, key: Node, node: Node) -> None:
        """Read the section of servers, whose keys are names."""
        if _tag(node) == "null":
            return
        if node.id != "mapping":
            self._complain(node, f"{MCP_SERVERS}: expected names of servers below it, found {_describe(node)}")
            return
        texts: list[str] = []
        for name, value in self._pairs(node):
            given = _constructed(value)
            spec, problems = mcp_servers.parse_server(name.value, given)
            for problem in problems:
                self._complain(name, problem)
            if spec is not None:
                texts.append(mcp_servers.written(name.value, given))
        if len(texts) > mcp_servers.MAX_SERVERS:
            self._complain(key, f"{MCP_SERVERS}: at most {mcp_servers.MAX_SERVERS} servers are possible")
        self.found[MCP_SERVERS] = FoundValue(value=tuple(texts), where=self._where(key))

    def _read_setting(self, section: str, key: Node, node: Node) -> None:
        name = f"{section}.{key.value}"
        setting = SETTINGS.get(name)
        if name == "model.api_key":
            self._complain(key, f"{name}: {NO_KEY_HERE}")
        elif name in RETIRED:
            self.found[name] = FoundValue(value="", where=self._where(key))
        elif setting is None:
            hint = did_you_mean(name, SETTINGS)
            self._complain(key, f"unknown setting {_short(name)}{hint}")
        else:
            try:
                value = setting.check(self._value(setting, node))
            except ValueError as error:
                self._complain(node, f"{name}: {error}")
            else:
                self.found[name] = FoundValue(value=value, where=self._where(key))

    def _read_entry(self, setting: Setting, key: Node, node: Node) -> None:
        """Add what an open section has under a name of its own."""
        earlier = self.found.get(setting.name)
        try:
            added = setting.check(entries_of(plain_node(node), str(key.value)))
        except ValueError as error:
            self._complain(key, f"{setting.section}.{_short(str(key.value))}: {error}")
            return
        before = earlier.value if earlier is not None and isinstance(earlier.value, tuple) else ()
        assert isinstance(added, tuple)
        where = earlier.where if earlier is not None else self._where(key)
        self.found[setting.name] = FoundValue(value=(*before, *added), where=where)

    def _value(self, setting: Setting, node: Node) -> Value:
        kind = type(setting.default)
        if setting.rule.entries and node.id in {"mapping", "sequence"}:
            return entries_of(plain_node(node))
        if kind is tuple and node.id == "sequence":
            return tuple(_text(setting, item) for item in node.value)
        if kind is bool and _plain(node) and node.value.lower() in {"true", "false"}:
            return bool(node.value.lower() == "true")
        if kind is str:
            return _text(setting, node)
        if kind in {int, float} and _plain(node) and _tag(node) in {"int", "float", "str"}:
            return parse_number(setting, node.value)
        raise ValueError(f"expected {expected(setting)}, found {_describe(node)}{_advice(kind, node)}")

    def _pairs(self, node: Node) -> list[tuple[Node, Node]]:
        """Return the pairs of a mapping. Its own keys win over merged ones (`<<: *anchor`)."""
        pairs: dict[str, tuple[Node, Node]] = {}
        merged: list[Node] = []
        for key, value in node.value:
            if _tag(key) == "merge":
                merged += _merged(value)
            elif key.id != "scalar":
                self._complain(key, f"a name cannot be {_describe(key)}")
            elif key.value in pairs:
                first = pairs[key.value][0].start_mark.line + 1
                self._complain(key, f"{_short(key.value)} is set twice; first in line {first}")
            else:
                pairs[key.value] = (key, value)
        self._merge(pairs, merged)
        return list(pairs.values())

    def _merge(self, pairs: dict[str, tuple[Node, Node]], merged: list[Node]) -> None:
        done: set[int] = set()  # a mapping can merge itself, or be merged many times
        while merged:
            node = merged.pop(0)
            if node.id != "mapping":
                self._complain(node, f"only mappings can be merged, not {_describe(node)}")
            elif id(node) not in done:
                done.add(id(node))
                for key, value in node.value:
                    if _tag(key) == "merge":
                        merged[:0] = _merged(value)
                    else:
                        pairs.setdefault(str(key.value), (key, value))


NO_KEY_HERE = (
    "the configuration must not contain a key; put it into the environment variable named by model.api_key_env, "
    "or into a file named by model.api_key_file"
)


def _suggestion(section: str, node: Node) -> str:
    """Return a suggestion for an unknown section: a section if it has settings below it, else a setting."""
    if (node.id == "mapping" or _tag(node) == "null") and (hint := did_you_mean(section, [*SECTIONS, MCP_SERVERS])):
        return hint
    homes = [each.name for each in SETTINGS.values() if each.key == section]
    return f"; did you mean {homes[0]}?" if homes else did_you_mean(section, [*SECTIONS, *SETTINGS])


def _text(setting: Setting, node: Node) -> str:
    if node.id == "scalar" and (_tag(node) == "str" or (setting.rule.choices and _tag(node) == "bool")):
        return str(node.value)  # YAML reads a bare `off` as a boolean; with choices it is a word
    what = "text" if type(setting.default) is str else "text in the list"
    raise ValueError(f"expected {what}, found {_describe(node)}{_advice(str, node)}")


def _constructed(node: Node) -> object:
    """Return the plain value of a node; None if it has none."""
    import yaml  # noqa: PLC0415 - slow

    constructor = yaml.constructor.SafeConstructor()
    try:
        return cast("object", constructor.construct_object(cast("yaml.Node", node), deep=True))
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _merged(node: Node) -> list[Node]:
    return list(node.value) if node.id == "sequence" else [node]


def _plain(node: Node) -> bool:
    return node.id == "scalar" and node.style is None


def _tag(node: Node) -> str:
    return str(node.tag).removeprefix(_TAG)


def _describe(node: Node) -> str:
    if node.id == "sequence":
        return "a list"
    if node.id == "mapping":
        return "a section"
    return {"null": "nothing", "str": f"the text {_short(node.value)}"}.get(_tag(node), _short(node.value))


def _advice(kind: type, node: Node) -> str:
    if _tag(node) == "null":
        return " (remove the line to use the default)"
    if kind is str and _plain(node):
        return " (put it in quotes)"
    if kind in {bool, int, float} and node.id == "scalar" and not _plain(node):
        return " (remove the quotes)" if kind is not bool else ""
    return " (write it as a list: [a, b])" if kind is tuple and node.id == "scalar" else ""
