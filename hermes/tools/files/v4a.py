"""Parser of the V4A patch format, which changes several files with one text.

    *** Begin Patch
    *** Update File: src/a.py
    *** Move to: src/b.py            (optional)
    @@ def greet():                  (optional: a line before the change)
     an unchanged line
    -a removed line
    +an added line
    *** End of File                  (optional: the lines above are the file's last)
    *** Add File: notes.txt
    +its first line
    *** Delete File: old.txt
    *** End Patch

Pure. A patch without its end line was truncated and is refused.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from hermes.domain.values import dataclass
from hermes.tools.tool import ToolError

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_UPDATE, _ADD, _DELETE = "*** Update File: ", "*** Add File: ", "*** Delete File: "
_MOVE, _LAST = "*** Move to: ", "*** End of File"
_FENCE = re.compile(r"```\w*")
_UNIFIED = re.compile(r"-\d+(,\d+)? \+\d+(,\d+)? @@.*")  # line numbers of a unified diff, which models mix in


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    anchors: tuple[str, ...]
    lines: tuple[str, ...]  # each with " ", "-" or "+" before it
    at_end: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    path: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    path: str
    move_to: str | None
    hunks: tuple[Hunk, ...]


Change: TypeAlias = Add | Delete | Update


def parse(text: str) -> tuple[Change, ...]:
    return _Parser(text).changes()


def paths(changes: tuple[Change, ...]) -> list[str]:
    """Return all paths of the changes, in order."""
    named = [(change.path, change.move_to if isinstance(change, Update) else None) for change in changes]
    return list(dict.fromkeys(path for pair in named for path in pair if path))


class _Parser:
    def __init__(self, text: str) -> None:
        lines = [line.removesuffix("\r") for line in text.strip("\r\n").split("\n")]
        while lines and _outside(lines[0]):
            del lines[0]
        while lines and _outside(lines[-1]):
            del lines[-1]
        if not lines or lines[0].strip() != _BEGIN:
            raise ToolError(f"The patch must begin with {_BEGIN!r}. Nothing was changed.")
        if len(lines) < 2 or lines[-1].strip() != _END:
            raise ToolError(f"The patch does not end with {_END!r}; it may be truncated. Nothing was changed.")
        self._lines = lines[1:-1]
        self._at = 0

    def changes(self) -> tuple[Change, ...]:
        changes: list[Change] = []
        while self._at < len(self._lines):
            line = self._take()
            if line.startswith(_UPDATE):
                changes.append(self._update(self._path(line, _UPDATE)))
            elif line.startswith(_ADD):
                changes.append(self._add(self._path(line, _ADD)))
            elif line.startswith(_DELETE):
                changes.append(Delete(path=self._path(line, _DELETE)))
            elif line.strip():
                raise self._problem(f"expected '{_UPDATE}', '{_ADD}' or '{_DELETE}' with a path")
        if not changes:
            raise ToolError("The patch names no file. Nothing was changed.")
        return tuple(changes)

    def _add(self, path: str) -> Add:
        lines = []
        while self._more():
            line = self._take()
            if line and not line.startswith("+"):
                raise self._problem("each line of a new file must begin with '+'")
            lines.append(line)
        return Add(path=path, lines=tuple(line[1:] for line in _without_bare_end(lines)))

    def _update(self, path: str) -> Update:
        move_to = None
        if self._at < len(self._lines) and self._lines[self._at].startswith(_MOVE):
            move_to = self._path(self._take(), _MOVE)
        hunks: list[Hunk] = []
        while self._more():
            if hunks and hunks[-1].at_end and not self._lines[self._at]:
                self._take()  # a blank separator line
            else:
                hunks.append(self._hunk())
        if not hunks and not move_to:
            raise self._problem(f"there is no change for {path}")
        return Update(path=path, move_to=move_to, hunks=tuple(hunks))

    def _hunk(self) -> Hunk:
        anchors = []
        while self._more() and self._lines[self._at].startswith("@@"):
            anchor = self._take()[2:].removeprefix(" ")
            if anchor.strip() and not _UNIFIED.fullmatch(anchor.strip()):
                anchors.append(anchor)
        lines: list[str] = []
        at_end = False
        while self._more() and not self._lines[self._at].startswith("@@") and not at_end:
            line = self._take()
            if line.rstrip() == _LAST:
                at_end = True
            elif line == "" or line[0] in " -+":
                lines.append(line)
            else:
                raise self._problem("each line of a change must begin with ' ', '-' or '+'")
        if not any(line.startswith(("-", "+")) for line in lines):
            raise self._problem("this part changes nothing: it has no line with '-' or '+'")
        kept = [line or " " for line in _without_bare_end(lines)]  # models often drop the blank of an empty line
        return Hunk(anchors=tuple(anchors), lines=tuple(kept), at_end=at_end)

    def _more(self) -> bool:
        return self._at < len(self._lines) and not self._lines[self._at].startswith((_UPDATE, _ADD, _DELETE))

    def _take(self) -> str:
        self._at += 1
        return self._lines[self._at - 1]

    def _path(self, line: str, mark: str) -> str:
        path = line.removeprefix(mark).strip()
        if not path:
            raise self._problem("the path is missing")
        return path

    def _problem(self, text: str) -> ToolError:
        seen = self._lines[self._at - 1][:80] if self._at else ""
        return ToolError(f"Line {self._at + 1} of the patch ({seen!r}): {text}. Nothing was changed.")


def _without_bare_end(lines: list[str]) -> list[str]:
    """Return the lines without trailing empty ones, which only separate."""
    end = len(lines)
    while end and not lines[end - 1]:
        end -= 1
    return lines[:end]


def _outside(line: str) -> bool:
    return not line.strip() or bool(_FENCE.fullmatch(line.strip()))
