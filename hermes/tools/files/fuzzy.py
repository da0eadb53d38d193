"""Fuzzy text replacement, for old text that a model copied with small mistakes. Pure.

Strategies go from strict to lenient; the first one with a match is used. Each strategy defines which differences it
ignores (white space, indentation, escapes, typographic characters); everything else must be equal. Text outside a
match is not changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from os.path import commonprefix
from typing import TypeAlias

from hermes.domain.values import dataclass
from hermes.tools.tool import ToolError

_TYPOGRAPHIC = str.maketrans(  # each one character, so that positions stay the same
    {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "\N{NO-BREAK SPACE}": " "}  # noqa: RUF001
)
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\r": "\r", r"\"": '"', r"\'": "'", r"\\": "\\"}
_ESCAPE = re.compile(r"""\\[ntr"'\\]""")
_MAX_NEAR_LINES = 5_000
_NEAR_CHARS = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    text: str
    count: int
    strategy: str


Strategy: TypeAlias = Callable[[str, str, str], list[Edit]]


def replace(text: str, old: str, new: str, *, every: bool) -> Replaced:
    """Replace the only match, or all matches if `every`."""
    if not old:
        raise ToolError("old_string is empty. Give the text to replace, or use write_file.")
    if old == new:
        raise ToolError("old_string and new_string are equal. Nothing was changed.")
    for name, strategy in STRATEGIES.items():
        edits = strategy(text, old, new)
        if len(edits) > 1 and not every:
            raise ToolError(_ambiguous(text, edits))
        if edits:
            apart = _apart(edits)
            return Replaced(text=_applied(text, apart), count=len(apart), strategy=name)
    raise ToolError(_not_found(text, old, new))


def _apart(edits: list[Edit]) -> list[Edit]:
    """Return the edits without those that overlap an earlier one."""
    kept: list[Edit] = []
    for edit in edits:
        if not kept or edit.start >= kept[-1].end:
            kept.append(edit)
    return kept


def _applied(text: str, edits: list[Edit]) -> str:
    parts, at = [], 0
    for edit in edits:
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def _exact(text: str, old: str, new: str) -> list[Edit]:
    return [Edit(start=at, end=at + len(old), text=new) for at in _places(text, old)]


def _places(text: str, old: str) -> Iterator[int]:
    at = text.find(old)
    while at >= 0:
        yield at
        at = text.find(old, at + 1)


def _trailing_space(text: str, old: str, new: str) -> list[Edit]:
    return _by_lines(text, old, new, lambda lines: [line.rstrip() for line in lines])


def _indentation(text: str, old: str, new: str) -> list[Edit]:
    return _by_lines(text, old, new, dedented)


def _line_ends(text: str, old: str, new: str) -> list[Edit]:
    return _by_lines(text, old, new, lambda lines: [line.strip() for line in lines])


def _by_lines(text: str, old: str, new: str, normal: Callable[[list[str]], list[str]]) -> list[Edit]:
    """Return edits of whole lines whose normal form equals that of the old lines."""
    lines = text.split("\n")
    old_lines = old.removesuffix("\n").split("\n")
    starts = _line_starts(lines)
    edits = []
    for at in line_matches(lines, old_lines, normal):
        window = lines[at : at + len(old_lines)]
        start, end = starts[at], starts[at + len(old_lines)] - 1
        wanted = shifted(new.split("\n"), indent_of(old_lines), indent_of(window))
        put = "\n".join(wanted)
        if old.endswith("\n"):
            if end < len(text):
                end += 1
            else:
                put = put.removesuffix("\n")  # the file has no newline at its end and gets none
        edits.append(Edit(start=start, end=end, text=put))
    return edits


def _line_starts(lines: list[str]) -> list[int]:
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    return starts


def line_matches(lines: list[str], old: list[str], normal: Callable[[list[str]], list[str]]) -> list[int]:
    """Return the positions of the old lines in `lines`. They may overlap."""
    wanted = normal(old)
    if not any(wanted):
        return []  # blank lines match everywhere
    stripped, first = [line.strip() for line in lines], old[0].strip()
    return [
        at
        for at in range(len(lines) - len(old) + 1)
        if stripped[at] == first and normal(lines[at : at + len(old)]) == wanted
    ]


def dedented(lines: list[str]) -> list[str]:
    margin = len(commonprefix([_indent(line) for line in lines if line.strip()]))  # noqa: RUF071 - no paths
    return [line[margin:].rstrip() if line.strip() else "" for line in lines]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def indent_of(lines: list[str]) -> str:
    return next((_indent(line) for line in lines if line.strip()), "")


def shifted(lines: list[str], before: str, after: str) -> list[str]:
    """Return the lines with the indentation `after` instead of `before`."""
    if before == after:
        return lines
    return [after + line.removeprefix(before) if line.strip() and line.startswith(before) else line for line in lines]


def _any_space(text: str, old: str, new: str) -> list[Edit]:
    """Match with any number of blanks between words. A match begins and ends at a word."""
    if not old.strip():
        return []
    body = old.strip()
    rows = [r"[^\S\n]+".join(map(re.escape, row.split())) for row in body.split("\n")]
    pattern = r"[^\S\n]*\n[^\S\n]*".join(rows)
    if body[0].isalnum() and body[-1].isalnum():
        pattern = rf"(?<!\w){pattern}(?!\w)"  # words, not parts of words
    edits = []
    for match in re.finditer(pattern, text):
        here = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        lines = new.strip().split("\n")
        moved = shifted(lines[1:], indent_of(old.strip("\n").split("\n")), _indent(here + "x"))
        edits.append(Edit(start=match.start(), end=match.end(), text="\n".join([lines[0], *moved])))
    return edits


def _typographic(text: str, old: str, new: str) -> list[Edit]:
    return _exact(text.translate(_TYPOGRAPHIC), old.translate(_TYPOGRAPHIC), new)


def _escaped(text: str, old: str, new: str) -> list[Edit]:
    plain = _unescaped(old)
    return [] if plain == old else _exact(text, plain, _unescaped(new))


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda escape: _ESCAPES[escape[0]], text)


def _blank_edges(text: str, old: str, new: str) -> list[Edit]:
    """Match without the empty lines at the start and end."""
    inner = _without_blank_edges(old)
    return [] if inner in ("", old) else _line_ends(text, inner, _without_blank_edges(new))


def _without_blank_edges(text: str) -> str:
    lines = text.split("\n")
    while lines and not lines[0].strip():
        del lines[0]
    while lines and not lines[-1].strip():
        del lines[-1]
    return "\n".join(lines)


STRATEGIES: dict[str, Strategy] = {
    "exact": _exact,
    "trailing space ignored": _trailing_space,
    "indentation ignored": _indentation,
    "space at line ends ignored": _line_ends,
    "runs of space ignored": _any_space,
    "typographic characters ignored": _typographic,
    "escapes undone": _escaped,
    "blank lines around it ignored": _blank_edges,
}


def _ambiguous(text: str, edits: list[Edit]) -> str:
    numbers = [str(text.count("\n", 0, edit.start) + 1) for edit in edits[:10]]
    more = f" and {len(edits) - 10} more" if len(edits) > 10 else ""
    return (
        f"old_string occurs {len(edits)} times, at lines {', '.join(numbers)}{more}. Nothing was changed. "
        "Include more surrounding lines, or set replace_all."
    )


def _not_found(text: str, old: str, new: str) -> str:
    problem = "old_string was not found. Nothing was changed."
    if new.strip() and new in text:
        return f"{problem} new_string is already in the file; the change may have been applied before."
    return f"{problem} {nearest(text.split(chr(10)), old)}"


def nearest(lines: list[str], old: str) -> str:
    """Return a hint with the lines most similar to the first line of `old`."""
    first = next((line.strip() for line in old.split("\n") if line.strip()), "")[:_NEAR_CHARS]
    numbers: dict[str, int] = {}
    for number, line in enumerate(lines[:_MAX_NEAR_LINES], 1):
        numbers.setdefault(line.strip()[:_NEAR_CHARS], number)
    near = [f"line {numbers[line]}: {line}" for line in get_close_matches(first, numbers, n=3) if line]
    return "\n".join(["The most similar lines are", *near]) if near else "No line is similar. Read the file again."
